import { liveInputSchema, liveStatusSchema } from '../../contract/live.ts';
import { billOf, MIN_CREDIT_SECONDS } from '../../jobs/end-job.ts';
import type { LiveRecord, LiveStore } from '../../jobs/live-ports.ts';
import { canPay, hasCreditLeft, reservedForJobs } from './account-limits.ts';
import { hasChanged } from './statements.ts';

interface LiveRow {
  readonly id: string;
  readonly account_id: string;
  readonly status: string;
  readonly input: string;
  readonly started_at: number | null;
  readonly completed_at: number | null;
}

/** `LiveStore` over D1. A D1 batch is one transaction; statements that depend on the previous one test `changes()`. */
export function createLiveStore(db: D1Database): LiveStore {
  return {
    async create({ id, accountId, input, now }, maxOpen) {
      const result = await db
        .prepare(
          `INSERT INTO live_streams (id, account_id, status, input, created_at)
           SELECT ?1, ?2, 'created', ?3, ?4
           WHERE (SELECT COUNT(*) FROM live_streams WHERE account_id = ?2 AND completed_at IS NULL) < ?5
           AND ${hasCreditLeft('?2', '?4')}`,
        )
        .bind(id, accountId, JSON.stringify(input), now, maxOpen)
        .run();
      if (hasChanged([result])) return 'created';
      return (await canPay(db, accountId, now)) ? 'too_many_streams' : 'payment_required';
    },

    async find(streamId) {
      const row = await db.prepare('SELECT * FROM live_streams WHERE id = ?1').bind(streamId).first<LiveRow>();
      return row ? fromRow(row) : undefined;
    },

    async spend(streamId, receivedSeconds) {
      const [, account] = await db.batch<{ can_continue: number }>([
        db
          .prepare(
            `UPDATE live_streams SET used_seconds = MAX(used_seconds, ?2) WHERE id = ?1
             AND EXISTS (SELECT 1 FROM accounts WHERE accounts.id = account_id AND subscribed = 0)`,
          )
          .bind(streamId, receivedSeconds),
        db
          .prepare(
            `SELECT subscribed = 1 OR ROUND(credit_seconds - (${reservedForJobs('accounts.id')}) - (
               SELECT SUM(CASE id WHEN ?1 THEN used_seconds ELSE MAX(${MIN_CREDIT_SECONDS}, used_seconds) END)
               FROM live_streams
               WHERE account_id = accounts.id AND completed_at IS NULL
             ), 3) > 0 AS can_continue
             FROM accounts WHERE id = (SELECT account_id FROM live_streams WHERE id = ?1 AND completed_at IS NULL)`,
          )
          .bind(streamId),
      ]);
      // Without a row the stream has ended meanwhile and spends nothing.
      return account.results[0]?.can_continue !== 0;
    },

    async start(streamId, now) {
      const result = await db
        .prepare(`UPDATE live_streams SET status = 'running', started_at = ?2 WHERE id = ?1 AND status = 'created'`)
        .bind(streamId, now)
        .run();
      return hasChanged([result]);
    },

    async end(streamId, { status, receivedSeconds }, now) {
      const from = status === 'done' ? `'running'` : `'created', 'running'`;
      const ended = db
        .prepare(`UPDATE live_streams SET status = ?2, completed_at = ?3 WHERE id = ?1 AND status IN (${from})`)
        .bind(streamId, status, now);
      const isBilled = status === 'done' && receivedSeconds > 0;
      const results = await db.batch([ended, ...(isBilled ? billing(db, streamId, receivedSeconds, now) : [])]);
      return hasChanged(results);
    },

    async openSince(createdBefore, startedBefore, limit) {
      const { results } = await db
        .prepare(
          `SELECT id FROM live_streams
           WHERE completed_at IS NULL AND (status = 'created' AND created_at < ?1 OR started_at < ?2)
           ORDER BY random() LIMIT ?3`,
        )
        .bind(createdBefore, startedBefore, limit)
        .all<{ id: string }>();
      return results.map(({ id }) => id);
    },
  };
}

/**
 * The usage record and the credit of a stream, if the previous statement of the batch ended the stream.
 */
function billing(db: D1Database, streamId: string, receivedSeconds: number, now: number): D1PreparedStatement[] {
  const { billedSeconds, creditSeconds } = billOf('live', receivedSeconds);
  return [
    db
      .prepare(
        `INSERT OR IGNORE INTO usage_records (job_id, account_id, kind, billed_seconds, credit_seconds, created_at)
         SELECT id, account_id, 'live', ?2, ?3, ?4 FROM live_streams WHERE id = ?1 AND changes() = 1`,
      )
      .bind(streamId, billedSeconds, creditSeconds, now),
    db
      .prepare(
        `UPDATE accounts SET credit_seconds = credit_seconds - ?2
         WHERE subscribed = 0 AND changes() = 1 AND id = (SELECT account_id FROM live_streams WHERE id = ?1)`,
      )
      .bind(streamId, creditSeconds),
  ];
}

function fromRow(row: LiveRow): LiveRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    status: liveStatusSchema.parse(row.status),
    input: liveInputSchema.parse(JSON.parse(row.input)),
    startedAt: row.started_at ?? undefined,
    completedAt: row.completed_at ?? undefined,
  };
}
