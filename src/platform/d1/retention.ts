const DAY_MS = 24 * 3600 * 1000;

export const ENDED_SQL = `SELECT id FROM jobs
  WHERE completed_at <= ?1 AND cleaned_at IS NOT NULL ORDER BY completed_at LIMIT ?2`;

export const ENDED_STREAMS_SQL = `SELECT id FROM live_streams
  WHERE completed_at <= ?1 ORDER BY completed_at LIMIT ?2`;

const OLD_USAGE = `(SELECT job_id FROM usage_records WHERE created_at <= ?1 ORDER BY created_at, job_id LIMIT ?2)`;

/** Adds old usage up by day and kind. The limit is that of what is deleted, in the same order. */
export const FOLD_USAGE_SQL = `
  INSERT INTO usage_days (account_id, day, kind, billed_seconds, credit_seconds, jobs)
  SELECT account_id, created_at / ${DAY_MS}, kind, SUM(billed_seconds), SUM(credit_seconds), COUNT(*)
  FROM usage_records WHERE job_id IN ${OLD_USAGE} GROUP BY 1, 2, 3
  ON CONFLICT DO UPDATE SET billed_seconds = billed_seconds + excluded.billed_seconds,
    credit_seconds = credit_seconds + excluded.credit_seconds, jobs = jobs + excluded.jobs`;

/** `JobStore.forget` */
export async function forget(db: D1Database, endedBefore: number, limit: number): Promise<number> {
  const results = await db.batch([
    db.prepare(FOLD_USAGE_SQL).bind(endedBefore, limit),
    db.prepare(`DELETE FROM usage_records WHERE job_id IN ${OLD_USAGE}`).bind(endedBefore, limit),
    db.prepare(`DELETE FROM jobs WHERE id IN (${ENDED_SQL})`).bind(endedBefore, limit),
    db.prepare(`DELETE FROM live_streams WHERE id IN (${ENDED_STREAMS_SQL})`).bind(endedBefore, limit),
  ]);
  return Math.max(...results.slice(1).map(({ meta }) => meta.changes));
}
