import { roundSeconds, type UsageQuery, type UsageRow, usageRowSchema } from '../../contract/account.ts';
import type { UsageService } from '../../jobs/app-services.ts';

const DAY_MS = 24 * 3600 * 1000;

/** An SQL expression: the first day that begins at or after `moment`. */
const firstDayFrom = (moment: string): string => `CAST((${moment} + ${DAY_MS - 1}) / ${DAY_MS} AS INTEGER)`;

/**
 * Parameters: account id, first moment, first moment after. Walks the index `usage_account` and the key of `usage_days`
 * over that range alone. A day of which only sums are left counts if it begins in the range.
 */
export const USAGE_SQL = `
  WITH span (account, first, past) AS (SELECT ?, ?, ?)
  SELECT day, kind, SUM(billedSeconds) AS billedSeconds, SUM(jobs) AS jobs FROM (
    SELECT created_at / ${DAY_MS} AS day, kind, billed_seconds AS billedSeconds, 1 AS jobs
    FROM span CROSS JOIN usage_records ON account_id = account AND created_at >= first AND created_at < past
    UNION ALL
    SELECT day, kind, billed_seconds, jobs
    FROM span CROSS JOIN usage_days
    ON account_id = account AND day >= ${firstDayFrom('first')} AND day < ${firstDayFrom('past')}
  )
  GROUP BY day, kind ORDER BY day, kind`;

/** The same for every account, by its name. Parameters: first moment, first moment after. */
export const USAGE_OF_ALL_SQL = `
  SELECT accounts.name AS account, usage_records.created_at / ${DAY_MS} AS day, kind,
         SUM(billed_seconds) AS billedSeconds, COUNT(*) AS jobs
  FROM usage_records JOIN accounts ON accounts.id = account_id
  WHERE usage_records.created_at >= ? AND usage_records.created_at < ?
  GROUP BY account, day, kind ORDER BY account, day, kind`;

/** A row of `USAGE_SQL`. */
export interface UsageSqlRow {
  /** Days since the Unix epoch. */
  readonly day: number;
  readonly kind: string;
  readonly billedSeconds: number;
  readonly jobs: number;
}

/** @throws when the database names a kind that the contract does not know */
export function usageFromRow({ day, kind, billedSeconds, jobs }: UsageSqlRow): UsageRow {
  return usageRowSchema.parse({
    date: new Date(day * DAY_MS).toISOString().slice(0, 10),
    kind,
    billedSeconds: roundSeconds(billedSeconds),
    jobs,
    voiceprints: kind === 'voiceprint' ? jobs : 0,
  });
}

/** `UsageService` over D1. */
export function createUsage(db: D1Database): UsageService {
  return {
    async perDay(accountId, { from, to }: UsageQuery) {
      const { results } = await db.prepare(USAGE_SQL).bind(accountId, from, to).all<UsageSqlRow>();
      return results.map(usageFromRow);
    },
  };
}

export const ENDED_SQL = `SELECT id FROM jobs
  WHERE completed_at <= ?1 AND cleaned_at IS NOT NULL ORDER BY completed_at LIMIT ?2`;

export const ENDED_STREAMS_SQL = `SELECT id FROM live_streams
  WHERE completed_at <= ?1 ORDER BY completed_at LIMIT ?2`;

const OLD_USAGE = `(SELECT job_id FROM usage_records WHERE created_at <= ?1 ORDER BY created_at, job_id LIMIT ?2)`;

/** Adds up old usage by day and kind. Order and limit are those of the DELETE that follows. */
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
