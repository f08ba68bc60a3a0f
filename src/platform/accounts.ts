import type { Account, Scope } from '../jobs/app-services.ts';
import { DEFAULT_RATE_LIMITS, type RateLimits } from '../jobs/app-services.ts';
import { parseScopes } from './scopes.ts';

/** NULL stands for the default. */
interface RateLimitsRow {
  readonly post_limit: number | null;
  readonly get_limit: number | null;
}

interface KeyAccountRow extends RateLimitsRow {
  readonly scopes: string;
  readonly id: string;
  readonly name: string;
  readonly subscribed: number;
  readonly credit_seconds: number;
}

/**
 * The account that a living key belongs to, with the scopes of the key's row.
 * @param now milliseconds since the Unix epoch
 * @returns undefined for a key that is unknown, revoked, expired or another account's
 */
export async function findKeyAccount(
  db: D1Database,
  keyId: string,
  accountId: string,
  now: number,
): Promise<{ readonly account: Account; readonly scopes: readonly Scope[] } | undefined> {
  const row = await db
    .prepare(
      `SELECT k.scopes, a.id, a.name, a.subscribed, a.credit_seconds, a.post_limit, a.get_limit
       FROM api_keys k JOIN accounts a ON a.id = k.account_id
       WHERE k.id = ?1 AND k.account_id = ?2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?3)`,
    )
    .bind(keyId, accountId, now)
    .first<KeyAccountRow>();
  if (!row) return undefined;
  const { id, name, subscribed, credit_seconds: creditSeconds } = row;
  const account = { id, name, subscribed: subscribed === 1, creditSeconds, rateLimits: rateLimitsOf(row) };
  return { account, scopes: parseScopes(row.scopes) };
}

/** What an account may send, for calls that name it without a key; undefined for an unknown one. */
export async function findRateLimits(db: D1Database, accountId: string): Promise<RateLimits | undefined> {
  const row = await db
    .prepare('SELECT post_limit, get_limit FROM accounts WHERE id = ?1')
    .bind(accountId)
    .first<RateLimitsRow>();
  return row ? rateLimitsOf(row) : undefined;
}

function rateLimitsOf(row: RateLimitsRow): RateLimits {
  return {
    post: row.post_limit ?? DEFAULT_RATE_LIMITS.post,
    get: row.get_limit ?? DEFAULT_RATE_LIMITS.get,
  };
}
