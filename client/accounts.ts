import { randomUUID } from 'node:crypto';
import type { Scope } from '../src/jobs/app-services.ts';
import { formatScopes, signApiKey } from '../src/platform/api-keys.ts';
import { deriveWebhookSecret } from '../src/platform/signed-tokens.ts';
import type { RunSql } from './local/database.ts';

export interface AccountChange {
  readonly name: string;
  /** Sets the subscription. */
  readonly subscribe?: boolean;
  /** Sets the credit to so many seconds of audio. */
  readonly creditSeconds?: number;
}

export interface KeyRow {
  readonly id: string;
  readonly account: string;
  readonly scopes: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/**
 * Makes the account if there is none of that name, and applies the change.
 *
 * @returns its id
 */
export async function ensureAccount(run: RunSql, change: AccountChange, now: number): Promise<string> {
  await run('INSERT OR IGNORE INTO accounts (id, name, created_at) VALUES (?, ?, ?)', randomUUID(), change.name, now);
  if (change.subscribe) await run('UPDATE accounts SET subscribed = 1 WHERE name = ?', change.name);
  if (change.creditSeconds !== undefined) {
    await run('UPDATE accounts SET credit_seconds = ? WHERE name = ?', change.creditSeconds, change.name);
  }
  const [account] = await run('SELECT id FROM accounts WHERE name = ?', change.name);
  return String(account.id);
}

export interface NewKey {
  readonly accountId: string;
  readonly scopes: readonly Scope[];
  /** Milliseconds since the Unix epoch, as `now`. */
  readonly expiresAt?: number;
  /** Base64, the service's own. */
  readonly signingKey: string;
  /** Where browsers may connect to its live streams from; anywhere if undefined. */
  readonly origins?: readonly string[];
}

/** Records a new key and signs it. The token itself is not stored anywhere. */
export async function createKey(run: RunSql, key: NewKey, now: number): Promise<{ keyId: string; token: string }> {
  const keyId = randomUUID();
  await run(
    'INSERT INTO api_keys (id, account_id, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?)',
    keyId,
    key.accountId,
    formatScopes(key.scopes),
    now,
    key.expiresAt ?? null,
  );
  const { signingKey, accountId, scopes, expiresAt, origins } = key;
  const token = await signApiKey({ signingKey, accountId, keyId, scopes, issuedAt: now, expiresAt, origins });
  return { keyId, token };
}

/** @returns what verifies the webhooks of an account, undefined when there is no account of that name */
export async function webhookSecretOf(run: RunSql, account: string, signingKey: string): Promise<string | undefined> {
  const [row] = await run('SELECT id, webhook_secret_version AS version FROM accounts WHERE name = ?', account);
  return row && deriveWebhookSecret(signingKey, String(row.id), Number(row.version));
}

/** @returns false when there is no such key; revoking twice is fine */
export async function revokeKey(run: RunSql, keyId: string, now: number): Promise<boolean> {
  await run('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', now, keyId);
  return (await run('SELECT id FROM api_keys WHERE id = ?', keyId)).length === 1;
}

/** All keys, or those of one account; newest first. */
export async function listKeys(run: RunSql, account?: string): Promise<KeyRow[]> {
  return run<KeyRow>(
    `SELECT api_keys.id AS id, accounts.name AS account, scopes, api_keys.created_at AS createdAt,
            expires_at AS expiresAt, revoked_at AS revokedAt
     FROM api_keys JOIN accounts ON accounts.id = account_id ${account === undefined ? '' : 'WHERE accounts.name = ?'}
     ORDER BY api_keys.created_at DESC, api_keys.id`,
    ...(account === undefined ? [] : [account]),
  );
}
