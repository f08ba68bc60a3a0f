import { LEAST_CREDIT_SECONDS } from '../../jobs/bill.ts';

/**
 * An SQL expression: whether an account can pay for `seconds` of audio. What it has begun is set aside until it ends: a
 * voiceprint and whatever is not known to be longer with the least that is billed, a job whose recording was read with
 * its length, a stream with how long it runs, or how much it has used where it is sent faster. By the millisecond: sums
 * of decimal fractions are off by less, and twenty seconds that are left must be twenty.
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
  `SELECT COALESCE(SUM(MAX(${LEAST_CREDIT_SECONDS}, CASE kind WHEN 'voiceprint' THEN 0 ELSE COALESCE(duration_seconds, 0) END)), 0)
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
