import { randomUUID } from 'node:crypto';
import type { Scope } from '../src/jobs/app-services.ts';
import { formatScopes, signApiKey } from '../src/platform/api-keys.ts';
import { deriveWebhookSecret } from '../src/platform/signed-tokens.ts';
import { changeAccount, createAccount, findAccount } from './account-settings.ts';
import type { RunSql } from './local/database.ts';

export interface AccountChange {
  readonly name: string;
  readonly subscribe?: boolean;
  /** New credit, seconds of audio. */
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

/** Creates the account if it is missing, and applies the change. @returns the id of the account */
export async function ensureAccount(run: RunSql, change: AccountChange, now: number): Promise<string> {
  const { name, subscribe, creditSeconds } = change;
  const id = (await createAccount(run, name, now)) ?? (await findAccount(run, name))!.id;
  if (subscribe || creditSeconds !== undefined) {
    await changeAccount(run, name, { creditSeconds, ...(subscribe && { subscribed: true }) });
  }
  return id;
}

export interface NewKey {
  readonly accountId: string;
  readonly scopes: readonly Scope[];
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt?: number;
  /** Signing key of the service, base64. */
  readonly signingKey: string;
  /** Pages from which browsers may connect to live streams of the key; any if undefined. */
  readonly origins?: readonly string[];
}

/** Stores a new key and signs its token; does not store the token. */
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

/** @returns the secret that verifies an account's webhooks; undefined if no account has that name */
export async function webhookSecretOf(run: RunSql, name: string, signingKey: string): Promise<string | undefined> {
  const account = await findAccount(run, name);
  return account && deriveWebhookSecret(signingKey, account.id, account.webhookSecretVersion);
}

/** @returns false if the key does not exist; true for a key that is already revoked */
export async function revokeKey(run: RunSql, keyId: string, now: number): Promise<boolean> {
  await run('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', now, keyId);
  return (await run('SELECT id FROM api_keys WHERE id = ?', keyId)).length === 1;
}

/** Lists the keys of one account or of all, the newest first. */
export async function listKeys(run: RunSql, account?: string): Promise<KeyRow[]> {
  return run<KeyRow>(
    `SELECT api_keys.id AS id, accounts.name AS account, scopes, api_keys.created_at AS createdAt,
            expires_at AS expiresAt, revoked_at AS revokedAt
     FROM api_keys JOIN accounts ON accounts.id = account_id ${account === undefined ? '' : 'WHERE accounts.name = ?'}
     ORDER BY api_keys.created_at DESC, api_keys.id`,
    ...(account === undefined ? [] : [account]),
  );
}
