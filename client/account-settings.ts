import { randomUUID } from 'node:crypto';
import type { UsageQuery, UsageRow } from '../src/contract/account.ts';
import { WEBHOOK_SECRET_GRACE_MS } from '../src/jobs/webhook-signature.ts';
import { USAGE_OF_ALL_SQL, USAGE_SQL, type UsageSqlRow, usageFromRow } from '../src/platform/d1/usage-records.ts';
import type { RunSql, SqlValue } from './local/database.ts';

/** An account. Times are milliseconds since the Unix epoch; a limit of null means the service's default. */
export interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly subscribed: number;
  readonly creditSeconds: number;
  readonly postLimit: number | null;
  readonly getLimit: number | null;
  readonly webhookSecretVersion: number;
  readonly webhookSecretRotatedAt: number | null;
  readonly createdAt: number;
}

const SELECT_ACCOUNTS = `
  SELECT id, name, subscribed, credit_seconds AS creditSeconds, post_limit AS postLimit, get_limit AS getLimit,
         webhook_secret_version AS webhookSecretVersion, webhook_secret_rotated_at AS webhookSecretRotatedAt,
         created_at AS createdAt
  FROM accounts`;

/** Lists all accounts, by name. */
export async function listAccounts(run: RunSql): Promise<AccountRow[]> {
  return run<AccountRow>(`${SELECT_ACCOUNTS} ORDER BY name`);
}

/** @returns undefined if no account has that name */
export async function findAccount(run: RunSql, name: string): Promise<AccountRow | undefined> {
  const [row] = await run<AccountRow>(`${SELECT_ACCOUNTS} WHERE name = ?`, name);
  return row;
}

/** @returns the id of the new account; undefined if an account has that name */
export async function createAccount(run: RunSql, name: string, now: number): Promise<string | undefined> {
  const [row] = await run(
    'INSERT INTO accounts (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id',
    randomUUID(),
    name,
    now,
  );
  return row && String(row.id);
}

/** New values; absent settings are not changed. */
export interface AccountSettings {
  readonly subscribed?: boolean;
  readonly creditSeconds?: number;
  readonly addCreditSeconds?: number;
  /** Requests to one endpoint in a rate window; null restores the service's default. */
  readonly postLimit?: number | null;
  readonly getLimit?: number | null;
}

/**
 * Changes an account in one statement, so that a job that uses credit at the same time causes no lost update.
 *
 * @returns false if no account has that name
 */
export async function changeAccount(run: RunSql, name: string, settings: AccountSettings): Promise<boolean> {
  const { subscribed, creditSeconds, addCreditSeconds, postLimit, getLimit } = settings;
  const changes: [assignment: string, value: SqlValue | undefined][] = [
    ['subscribed = ?', subscribed === undefined ? undefined : Number(subscribed)],
    ['credit_seconds = ?', creditSeconds],
    ['credit_seconds = credit_seconds + ?', addCreditSeconds],
    ['post_limit = ?', postLimit],
    ['get_limit = ?', getLimit],
  ];
  const given = changes.flatMap(([assignment, value]) => (value === undefined ? [] : [{ assignment, value }]));
  if (given.length === 0) return (await findAccount(run, name)) !== undefined;
  const assignments = given.map(({ assignment }) => assignment).join(', ');
  const values = given.map(({ value }) => value);
  return (await run(`UPDATE accounts SET ${assignments} WHERE name = ? RETURNING id`, ...values, name)).length === 1;
}

export type Rotation =
  | { readonly kind: 'rotated'; readonly previousUntil: number }
  /** The previous secret still signs: another rotation would end it early. */
  | { readonly kind: 'too_early'; readonly until: number }
  | { readonly kind: 'no_account' };

/**
 * Gives an account a new webhook secret. The previous one also signs for a day.
 *
 * @param force rotates even within a day after a rotation, which ends the previous secret at once
 */
export async function rotateWebhookSecret(run: RunSql, name: string, now: number, force = false): Promise<Rotation> {
  const [rotated] = await run(
    `UPDATE accounts SET webhook_secret_version = webhook_secret_version + 1, webhook_secret_rotated_at = ?
     WHERE name = ? AND COALESCE(webhook_secret_rotated_at, 0) <= ? RETURNING id`,
    now,
    name,
    force ? now : now - WEBHOOK_SECRET_GRACE_MS,
  );
  if (rotated) return { kind: 'rotated', previousUntil: now + WEBHOOK_SECRET_GRACE_MS };
  const account = await findAccount(run, name);
  if (!account) return { kind: 'no_account' };
  return { kind: 'too_early', until: (account.webhookSecretRotatedAt ?? now) + WEBHOOK_SECRET_GRACE_MS };
}

/** Usage with the name of the billed account. */
export type AccountUsageRow = UsageRow & { readonly account: string };

/** Reads the billed usage of all accounts, by UTC day and kind. */
export async function usageOfAll(run: RunSql, { from, to }: UsageQuery): Promise<AccountUsageRow[]> {
  const rows = await run<UsageSqlRow & { readonly account: string }>(USAGE_OF_ALL_SQL, from, to);
  return rows.map(({ account, ...row }) => ({ account, ...usageFromRow(row) }));
}

/** Reads the billed usage of an account, by UTC day and kind. */
export async function accountUsage(run: RunSql, accountId: string, { from, to }: UsageQuery): Promise<UsageRow[]> {
  const rows = await run<UsageSqlRow>(USAGE_SQL, accountId, from, to);
  return rows.map(usageFromRow);
}
