import { LEASE_MS, QUEUE_LEASE_MS } from '../../jobs/dispatch.ts';
import { type OutboxMessage, outboxId } from '../../jobs/job-messages.ts';
import type {
  JobDeliveries,
  JobOutbox,
  JobSteps,
  OutboxPage,
  OutboxPosition,
  OutboxRow,
  StepStart,
} from '../../jobs/job-store.ts';
import { log } from '../log.ts';
import {
  hasChanged,
  insertWhileRunning,
  type JobRow,
  jobFromRow,
  type OutboxDbRow,
  outboxFromRow,
  selectJob,
} from './statements.ts';

/** Postponement of a message that this version of the service cannot read. */
const UNREADABLE_PAUSE_MS = 3600 * 1000;

type Outbox = JobOutbox & Omit<JobSteps, 'nextStep'> & Pick<JobDeliveries, 'reschedule'>;

/** The members of `JobStore` for unhandled messages. */
export function outboxOf(db: D1Database): Outbox {
  return {
    async settle(id) {
      await db.batch([
        // The clean-up of a job keeps the address for an unsent webhook, and does not run again.
        db
          .prepare(
            `UPDATE jobs SET webhook_url = NULL WHERE cleaned_at IS NOT NULL
             AND id = (SELECT job_id FROM outbox WHERE id = ?1 AND queue = 'webhooks')`,
          )
          .bind(id),
        db.prepare('DELETE FROM outbox WHERE id = ?1').bind(id),
      ]);
    },

    async reschedule(id, handled, message, dueAt) {
      const result = await db
        .prepare(
          `UPDATE outbox SET body = ?2, due_at = ?3, lease_until = ?4, starts = 0
           WHERE id = ?1 AND json_extract(body, '$.attempt') = ?5`,
        )
        .bind(id, JSON.stringify(message), dueAt, dueAt + LEASE_MS, handled.attempt)
        .run();
      return hasChanged([result]);
    },

    begin: (message, leaseUntil, now) => begin(db, message, leaseUntil, now),

    async keep(jobId, id, leaseUntil) {
      const [, { results }] = await db.batch([
        db.prepare('UPDATE outbox SET lease_until = ?2 WHERE id = ?1').bind(id, leaseUntil),
        db.prepare('SELECT 1 FROM jobs WHERE id = ?1 AND completed_at IS NULL').bind(jobId),
      ]);
      return results.length > 0;
    },

    async putBack(id, dueAt, isForgiven) {
      await db
        .prepare('UPDATE outbox SET due_at = ?2, lease_until = ?3, starts = MAX(0, starts - ?4) WHERE id = ?1')
        .bind(id, dueAt, dueAt + QUEUE_LEASE_MS, isForgiven ? 1 : 0)
        .run();
    },

    async handOver(id, leaseUntil) {
      await db
        .prepare('UPDATE outbox SET starts = 0, due_at = 0, lease_until = ?2 WHERE id = ?1')
        .bind(id, leaseUntil)
        .run();
    },

    async renewLease(id, leaseUntil) {
      await db.prepare('UPDATE outbox SET lease_until = ?2 WHERE id = ?1').bind(id, leaseUntil).run();
    },

    async renewLeases(leases) {
      await db
        .prepare(
          `UPDATE outbox SET lease_until = lease.until
           FROM (SELECT value ->> 0 AS id, value ->> 1 AS until FROM json_each(?1)) AS lease WHERE outbox.id = lease.id`,
        )
        .bind(JSON.stringify(leases.map(({ id, leaseUntil }) => [id, leaseUntil])))
        .run();
    },

    async outboxRow(id) {
      const row = await db.prepare('SELECT * FROM outbox WHERE id = ?1').bind(id).first<OutboxDbRow>();
      return row ? outboxFromRow(row) : undefined;
    },

    overdue: (before, limit, query) => overdue(db, before, limit, query),
  };
}

/** Pause before the third start of a step whose earlier starts did not report an end; doubled at each start. */
const FIRST_PAUSE_MS = 15_000;
const MAX_PAUSE_MS = 15 * 60_000;

async function begin(
  db: D1Database,
  message: OutboxMessage,
  leaseUntil: number,
  now: number,
): Promise<StepStart | undefined> {
  const [begun, { results: jobs }] = await db.batch<unknown>([
    db
      .prepare(
        `UPDATE outbox SET
           starts = starts + (due_at <= ?2),
           lease_until = CASE WHEN due_at <= ?2 THEN ?3 ELSE lease_until END,
           due_at = CASE WHEN due_at > ?2 THEN due_at WHEN starts = 0 THEN ?2
             ELSE ?2 + MIN(${MAX_PAUSE_MS}, ${FIRST_PAUSE_MS} << MIN(starts - 1, 16)) END
         WHERE id = ?1 AND json_extract(body, '$.attempt') IS ?4
         RETURNING starts, due_at AS dueAt, lease_until = ?3 AS isBegun`,
      )
      .bind(outboxId(message), now, leaseUntil, message.step === 'webhook' ? message.attempt : null),
    selectJob(db, message.jobId),
  ]);
  const [row] = begun.results as { starts: number; dueAt: number; isBegun: number }[];
  if (!row) return undefined;
  const [job] = jobs as JobRow[];
  return {
    starts: row.starts,
    job: job && jobFromRow(job),
    ...(row.isBegun === 0 && { pauseSeconds: Math.ceil((row.dueAt - now) / 1000) }),
  };
}

async function overdue(
  db: D1Database,
  before: number,
  limit: number,
  { jobId, after }: { readonly jobId?: string; readonly after?: OutboxPosition } = {},
): Promise<OutboxPage> {
  // D1 has no infinity; every lease ends before this.
  const moment = Math.min(before, Number.MAX_SAFE_INTEGER);
  const { leaseUntil, id: afterId } = after ?? { leaseUntil: Number.MIN_SAFE_INTEGER, id: '' };
  const order =
    'lease_until < ?1 AND lease_until >= ?3 AND (lease_until > ?3 OR id > ?4) ORDER BY lease_until, id LIMIT ?2';
  // Two statements, so that each uses its index: the query for one job must not scan the whole backlog.
  const statement =
    jobId === undefined
      ? db.prepare(`SELECT * FROM outbox WHERE ${order}`).bind(moment, limit, leaseUntil, afterId)
      : db
          .prepare(`SELECT * FROM outbox INDEXED BY outbox_job WHERE job_id = ?5 AND ${order}`)
          .bind(moment, limit, leaseUntil, afterId, jobId);
  const { results } = await statement.all<OutboxDbRow>();
  const last = results.length === limit ? results.at(-1) : undefined;
  const rows: OutboxRow[] = [];
  for (const row of results) {
    const parsed = outboxFromRow(row);
    if (parsed) rows.push(parsed);
    else if (SHARD_ROW.test(row.id)) rows.push(await restartJob(db, row.job_id));
    else await postpone(db, row, Math.min(moment, Date.now()));
  }
  return { rows, next: last && { leaseUntil: last.lease_until, id: last.id } };
}

/** Earlier versions wrote a row per shard, possibly still between the migration and their end. */
const SHARD_ROW = /\/shard\/\d+$/;

/** Repeats the ingest of a job that an earlier version was analysing. */
async function restartJob(db: D1Database, jobId: string): Promise<OutboxRow> {
  const message = { step: 'ingest', jobId } as const;
  const id = outboxId(message);
  await db.batch([
    insertWhileRunning(db, message, 0, 0),
    db.prepare(`DELETE FROM outbox WHERE job_id = ?1 AND queue <> 'webhooks' AND id <> ?2`).bind(jobId, id),
  ]);
  return { id, message, dueAt: 0, leaseUntil: 0, starts: 0 };
}

/**
 * Postpones a message of another version of the service, which may be deployed again. Until then the message must not
 * block the others.
 */
async function postpone(db: D1Database, { id, lease_until: leaseUntil }: OutboxDbRow, now: number): Promise<void> {
  // Postponed before; it is here only because the query covers all leases.
  if (leaseUntil > now) return;
  log('error', 'unreadable_outbox_row', { outboxId: id });
  await db
    .prepare('UPDATE outbox SET lease_until = MAX(lease_until, ?2) WHERE id = ?1')
    .bind(id, now + UNREADABLE_PAUSE_MS)
    .run();
}
