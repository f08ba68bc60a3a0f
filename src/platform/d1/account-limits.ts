import type { JobKind } from '../../jobs/app-services.ts';
import { LEASE_MS } from '../../jobs/dispatch.ts';
import { MIN_CREDIT_SECONDS } from '../../jobs/end-job.ts';
import type { JobAdmission } from '../../jobs/job-store.ts';
import { hasChanged, insertAfterChange } from './statements.ts';

/** @param maxWorkSeconds most audio that an account may have unfinished */
export function admissionOf(db: D1Database, maxWorkSeconds: number): JobAdmission {
  return {
    admit: (accountId, now) => admit(db, accountId, maxWorkSeconds, now),

    waitingAccounts: (limit, after) => waitingAccounts(db, limit, after, maxWorkSeconds),

    async sweepPosition(sweep) {
      const row = db.prepare('SELECT position FROM sweep_positions WHERE sweep = ?1').bind(sweep);
      return (await row.first<string>('position')) ?? '';
    },

    async setSweepPosition(sweep, position) {
      await db
        .prepare(
          `INSERT INTO sweep_positions (sweep, position) VALUES (?1, ?2)
           ON CONFLICT DO UPDATE SET position = excluded.position`,
        )
        .bind(sweep, position)
        .run();
    },
  };
}

/** Estimated length of a recording until its length is known. */
const ESTIMATED_SECONDS = 3600;
/** Maximum length of a recording for a voiceprint. */
const VOICE_SECONDS = 30;
const MAX_ADMITTED = 50;

export const estimatedSeconds = (kind: JobKind): number => (kind === 'voiceprint' ? VOICE_SECONDS : ESTIMATED_SECONDS);

/** An SQL expression: whether `seconds` more work stay within `limit`; without other work, any recording is allowed. */
const hasRoom = (seconds: string, limit: string): string =>
  `(work_seconds < 1 OR work_seconds + ${seconds} <= ${limit})`;

/** An SQL expression: whether a new job of the account begins at once. A job waits if an earlier one does. */
export const beginsAtOnce = (account: string, seconds: string, limit: string): string => `(
  NOT EXISTS (SELECT 1 FROM jobs WHERE account_id = ${account} AND status = 'pending' AND work_seconds IS NULL)
  AND EXISTS (SELECT 1 FROM accounts WHERE id = ${account} AND ${hasRoom(seconds, limit)}))`;

const NEXT_KIND_SQL = `SELECT kind FROM jobs
  WHERE account_id = account AND status = 'pending' AND jobs.work_seconds IS NULL ORDER BY created_at, id LIMIT 1`;

export const WAITING_SQL = `SELECT id, kind FROM jobs
  WHERE account_id = ?1 AND status = 'pending' AND work_seconds IS NULL ORDER BY created_at, id LIMIT ?2`;

/** `JobStore.admit` */
async function admit(db: D1Database, accountId: string, maxWorkSeconds: number, now: number): Promise<string[]> {
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
    // Without room, or if another sweep admitted the job, later jobs must wait, too.
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
async function waitingAccounts(
  db: D1Database,
  limit: number,
  after: string,
  maxWorkSeconds: number,
): Promise<string[]> {
  const sql = db.prepare(WAITING_ACCOUNTS_SQL).bind(after, limit, maxWorkSeconds);
  const { results } = await sql.all<{ account: string }>();
  return results.map(({ account }) => account);
}

/** Subtracts a job from its account's work, if the previous statement of the batch ended the job. */
export function releaseWork(db: D1Database, jobId: string): D1PreparedStatement {
  return db
    .prepare(
      `UPDATE accounts SET work_seconds = MAX(0, work_seconds - ${WORK_OF_JOB})
       WHERE changes() = 1 AND id = (SELECT account_id FROM jobs WHERE id = ?1)`,
    )
    .bind(jobId);
}

/** An SQL expression: the work of the job `?1`, in seconds. */
export const WORK_OF_JOB = '(SELECT COALESCE(work_seconds, 0) FROM jobs WHERE id = ?1)';

/**
 * An SQL expression: whether an account can pay for `seconds` of audio in addition to its unfinished jobs and streams.
 * A voiceprint or a recording of unknown length counts as the billing minimum, another recording as its length, a
 * stream as the time since its start or the audio received, whichever is more. Rounded to milliseconds, because sums of
 * decimal fractions are inexact.
 *
 * @param account the parameter that holds the account's id, for example `?2`
 * @param now the parameter that holds the time, in milliseconds since the Unix epoch
 * @param exceptJob the parameter that holds the id of the job to be paid, which is not reserved a second time
 */
export function hasCreditFor(account: string, now: string, seconds: string, exceptJob = `''`): string {
  return `EXISTS (
    SELECT 1 FROM accounts WHERE id = ${account} AND (subscribed = 1 OR ROUND(credit_seconds - ${seconds} - (
      ${reservedForJobs(account, exceptJob)}
    ) - (
      SELECT COALESCE(SUM(MAX(${MIN_CREDIT_SECONDS}, used_seconds, (${now} - COALESCE(started_at, ${now})) / 1000.0)), 0)
      FROM live_streams WHERE account_id = ${account} AND completed_at IS NULL
    ), 3) >= 0))`;
}

/**
 * An SQL query: the reserved credit of an account's unfinished jobs.
 * @param account SQL of the account's id
 * @param exceptJob SQL of the id of a job that is left out
 */
export const reservedForJobs = (account: string, exceptJob = `''`): string =>
  `SELECT COALESCE(SUM(MAX(
     ${MIN_CREDIT_SECONDS}, CASE kind WHEN 'voiceprint' THEN 0 ELSE COALESCE(duration_seconds, 0) END
   )), 0)
   FROM jobs WHERE account_id = ${account} AND completed_at IS NULL AND id <> ${exceptJob}
     AND request ->> '$.recountOf' IS NULL`;

/** `hasCreditFor` with the billing minimum. */
export const hasCreditLeft = (account: string, now: string): string =>
  hasCreditFor(account, now, String(MIN_CREDIT_SECONDS));

/** Whether the account can pay for one more job or stream. */
export async function canPay(db: D1Database, accountId: string, now: number): Promise<boolean> {
  const row = await db
    .prepare(`SELECT ${hasCreditLeft('?1', '?2')} AS can_pay`)
    .bind(accountId, now)
    .first<{ can_pay: number }>();
  return row?.can_pay === 1;
}
