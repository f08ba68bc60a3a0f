import { LEAST_CREDIT_SECONDS } from '../../jobs/end-job.ts';

/**
 * An SQL expression: whether an account can pay for `seconds` of audio beside its unfinished jobs and streams. Of
 * these, a voiceprint or a recording of unknown length counts as the least that is billed, another recording as its
 * length, a stream as the time since its start or the audio received, whichever is more. Rounded to milliseconds,
 * because sums of decimal fractions are inexact.
 *
 * @param account the parameter that holds the account's id, such as `?2`
 * @param now the parameter that holds the time, in milliseconds since the Unix epoch
 * @param exceptJob the parameter that holds the id of a job that is not set aside: the one that is to be paid
 */
export function hasCreditFor(account: string, now: string, seconds: string, exceptJob = `''`): string {
  return `EXISTS (
    SELECT 1 FROM accounts WHERE id = ${account} AND (subscribed = 1 OR ROUND(credit_seconds - ${seconds} - (
      ${setAsideForJobs(account, exceptJob)}
    ) - (
      SELECT COALESCE(SUM(MAX(${LEAST_CREDIT_SECONDS}, used_seconds, (${now} - COALESCE(started_at, ${now})) / 1000.0)), 0)
      FROM live_streams WHERE account_id = ${account} AND completed_at IS NULL
    ), 3) >= 0))`;
}

/**
 * An SQL query: the credit that an account's unfinished jobs need.
 * @param account SQL of the account's id
 * @param exceptJob SQL of the id of a job that is left out
 */
export const setAsideForJobs = (account: string, exceptJob = `''`): string =>
  `SELECT COALESCE(SUM(MAX(
     ${LEAST_CREDIT_SECONDS}, CASE kind WHEN 'voiceprint' THEN 0 ELSE COALESCE(duration_seconds, 0) END
   )), 0)
   FROM jobs WHERE account_id = ${account} AND completed_at IS NULL AND id <> ${exceptJob}
     AND request ->> '$.recountOf' IS NULL`;

/** `hasCreditFor` the least that a job or stream costs. */
export const hasCreditLeft = (account: string, now: string): string =>
  hasCreditFor(account, now, String(LEAST_CREDIT_SECONDS));

/** Whether the account can pay for one more job or stream. */
export async function canPay(db: D1Database, accountId: string, now: number): Promise<boolean> {
  const row = await db
    .prepare(`SELECT ${hasCreditLeft('?1', '?2')} AS can_pay`)
    .bind(accountId, now)
    .first<{ can_pay: number }>();
  return row?.can_pay === 1;
}
