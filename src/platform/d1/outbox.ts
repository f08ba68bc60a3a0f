import { LEASE_MS } from '../../jobs/dispatch.ts';
import { outboxId } from '../../jobs/messages.ts';
import type { JobStore, OutboxPage, OutboxPosition, OutboxRow } from '../../jobs/ports.ts';
import { log } from '../log.ts';
import { type OutboxDbRow, outboxFromRow } from './rows.ts';
import { hasChanged } from './statements.ts';

/** How long a message is left alone that this version of the service cannot read. */
const UNREADABLE_PAUSE_MS = 3600 * 1000;

type Outbox = Pick<
  JobStore,
  | 'settle'
  | 'settleEarly'
  | 'reschedule'
  | 'isStranded'
  | 'renewLease'
  | 'renewLeases'
  | 'outboxRow'
  | 'overdue'
  | 'recordStart'
  | 'handOver'
>;

/** The part of `JobStore` that is about messages which must still be handled. */
export function outboxOf(db: D1Database): Outbox {
  return {
    async settle(id) {
      await db.batch([
        // The clean-up leaves the address to a webhook that is still to be sent; no other clean-up comes.
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
          `UPDATE outbox SET body = ?2, due_at = ?3, lease_until = ?4, starts = 0 WHERE id = ?1 AND json_extract(body, '$.attempt') = ?5`,
        )
        .bind(id, JSON.stringify(message), dueAt, dueAt + LEASE_MS, handled.attempt)
        .run();
      return hasChanged([result]);
    },

    async settleEarly(jobId) {
      await db
        .prepare(
          `DELETE FROM outbox WHERE id = ?1
           AND EXISTS (SELECT 1 FROM outbox WHERE job_id = ?2 AND queue = 'jobs' AND id <> ?1)`,
        )
        .bind(outboxId({ step: 'assemble', jobId }), jobId)
        .run();
    },

    async isStranded(jobId) {
      const row = await db
        .prepare(
          `SELECT 1 FROM jobs WHERE id = ?1 AND status = 'running'
           AND NOT EXISTS (SELECT 1 FROM outbox WHERE job_id = ?1 AND queue <> 'webhooks')`,
        )
        .bind(jobId)
        .first();
      return row !== null;
    },

    async handOver(id, leaseUntil) {
      await db.prepare('UPDATE outbox SET starts = 0, lease_until = ?2 WHERE id = ?1').bind(id, leaseUntil).run();
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

    async recordStart(id, leaseUntil) {
      await db
        .prepare('UPDATE outbox SET starts = starts + 1, lease_until = ?2 WHERE id = ?1')
        .bind(id, leaseUntil)
        .run();
    },
  };
}

async function overdue(
  db: D1Database,
  before: number,
  limit: number,
  { jobId, after }: { readonly jobId?: string; readonly after?: OutboxPosition } = {},
): Promise<OutboxPage> {
  // D1 has no infinity; every lease lies before this.
  const moment = Math.min(before, Number.MAX_SAFE_INTEGER);
  const { leaseUntil, id: afterId } = after ?? { leaseUntil: Number.MIN_SAFE_INTEGER, id: '' };
  const order =
    'lease_until < ?1 AND lease_until >= ?3 AND (lease_until > ?3 OR id > ?4) ORDER BY lease_until, id LIMIT ?2';
  // Two statements, so that each has its index: the one for a job must not walk the backlog of all of them.
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
    else await putOff(db, row, Math.min(moment, Date.now()));
  }
  return { rows, next: last && { leaseUntil: last.lease_until, id: last.id } };
}

/**
 * A message of another version of the service, which may come back. It must not stand in the way of all others
 * meanwhile.
 */
async function putOff(db: D1Database, { id, lease_until: leaseUntil }: OutboxDbRow, now: number): Promise<void> {
  // Put off before, and met again only because all are asked for.
  if (leaseUntil > now) return;
  log('error', 'unreadable_outbox_row', { outboxId: id });
  await db
    .prepare('UPDATE outbox SET lease_until = MAX(lease_until, ?2) WHERE id = ?1')
    .bind(id, now + UNREADABLE_PAUSE_MS)
    .run();
}
