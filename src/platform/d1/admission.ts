import type { JobKind } from '../../jobs/app-services.ts';
import { LEASE_MS } from '../../jobs/dispatch.ts';
import { hasChanged, insertAfterChange } from './statements.ts';

/** What a recording counts for before its length is known, in seconds. */
const ESTIMATED_SECONDS = 3600;
/** A recording for a voiceprint has at most so many. */
const VOICE_SECONDS = 30;
const MAX_ADMITTED = 50;

export const estimatedSeconds = (kind: JobKind): number => (kind === 'voiceprint' ? VOICE_SECONDS : ESTIMATED_SECONDS);

/** An SQL expression: whether an account may have so much more audio in work. One recording may be longer than that. */
const hasRoom = (seconds: string, limit: string): string =>
  `(work_seconds < 1 OR work_seconds + ${seconds} <= ${limit})`;

/** An SQL expression: whether a new job of the account begins at once. Where others wait, it waits behind them. */
export const beginsAtOnce = (account: string, seconds: string, limit: string): string => `(
  NOT EXISTS (SELECT 1 FROM jobs WHERE account_id = ${account} AND status = 'pending' AND work_seconds IS NULL)
  AND EXISTS (SELECT 1 FROM accounts WHERE id = ${account} AND ${hasRoom(seconds, limit)}))`;

const NEXT_KIND_SQL = `SELECT kind FROM jobs
  WHERE account_id = account AND status = 'pending' AND jobs.work_seconds IS NULL ORDER BY created_at, id LIMIT 1`;

export const WAITING_SQL = `SELECT id, kind FROM jobs
  WHERE account_id = ?1 AND status = 'pending' AND work_seconds IS NULL ORDER BY created_at, id LIMIT ?2`;

/** `JobStore.admit` */
export async function admit(db: D1Database, accountId: string, maxWorkSeconds: number, now: number): Promise<string[]> {
  const { results } = await db.prepare(WAITING_SQL).bind(accountId, MAX_ADMITTED).all<{ id: string; kind: JobKind }>();
  const admitted: string[] = [];
  for (const { id, kind } of results) {
    const seconds = estimatedSeconds(kind);
    const written = await db.batch([
      db
        .prepare(
          `UPDATE jobs SET work_seconds = ?2, updated_at = ?5
           WHERE id = ?1 AND status = 'pending' AND work_seconds IS NULL
           AND EXISTS (SELECT 1 FROM accounts WHERE id = ?3 AND ${hasRoom('?2', '?4')})`,
        )
        .bind(id, seconds, accountId, maxWorkSeconds, now),
      db
        .prepare('UPDATE accounts SET work_seconds = work_seconds + ?2 WHERE id = ?1 AND changes() = 1')
        .bind(accountId, seconds),
      insertAfterChange(db, { step: 'ingest', jobId: id }, now, now + LEASE_MS),
    ]);
    // Another run may have begun with it. Its successors wait behind it in any case.
    if (!hasChanged(written)) break;
    admitted.push(id);
  }
  return admitted;
}

/** Accounts with room for their next waiting job. Two seeks per account, which may have ten thousand jobs. */
export const WAITING_ACCOUNTS_SQL = `
  WITH RECURSIVE waiting (account) AS (
    SELECT (SELECT MIN(account_id) FROM jobs WHERE account_id > ?1 AND status = 'pending' AND work_seconds IS NULL)
    UNION ALL
    SELECT (SELECT MIN(account_id) FROM jobs WHERE account_id > account AND status = 'pending' AND work_seconds IS NULL)
    FROM waiting WHERE account IS NOT NULL
  )
  SELECT account FROM waiting JOIN accounts ON id = account
  WHERE ${hasRoom(
    `CASE (${NEXT_KIND_SQL}) WHEN 'voiceprint' THEN ${VOICE_SECONDS} ELSE ${ESTIMATED_SECONDS} END`,
    '?3',
  )} LIMIT ?2`;

/** `JobStore.waitingAccounts` */
export async function waitingAccounts(
  db: D1Database,
  limit: number,
  after: string,
  maxWorkSeconds: number,
): Promise<string[]> {
  const sql = db.prepare(WAITING_ACCOUNTS_SQL).bind(after, limit, maxWorkSeconds);
  const { results } = await sql.all<{ account: string }>();
  return results.map(({ account }) => account);
}

/** What the account's work is less by where the statement before has ended a job. */
export function releaseWork(db: D1Database, jobId: string): D1PreparedStatement {
  return db
    .prepare(
      `UPDATE accounts SET work_seconds = MAX(0, work_seconds - ${WORK_OF_JOB})
       WHERE changes() = 1 AND id = (SELECT account_id FROM jobs WHERE id = ?1)`,
    )
    .bind(jobId);
}

/** An SQL expression: what the job `?1` counts for. */
export const WORK_OF_JOB = '(SELECT COALESCE(work_seconds, 0) FROM jobs WHERE id = ?1)';
