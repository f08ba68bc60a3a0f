import { type OutboxMessage, outboxId, queueOf } from '../../jobs/job-messages.ts';

/** Whether the first statement of a batch changed its row: those after it hang on that. */
export function hasChanged([first]: readonly D1Result[]): boolean {
  return first.meta.changes === 1;
}

/** Of a deleted job there is nothing to read. */
export function selectJob(db: D1Database, jobId: string): D1PreparedStatement {
  return db.prepare('SELECT * FROM jobs WHERE id = ?1 AND deleted_at IS NULL').bind(jobId);
}

const INSERT_OUTBOX = `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
  SELECT ?1, ?2, ?3, ?4, ?5, ?6`;

const valuesOf = (message: OutboxMessage, dueAt: number, leaseUntil: number) =>
  [outboxId(message), message.jobId, queueOf(message), JSON.stringify(message), dueAt, leaseUntil] as const;

/** The first message of a job that the statement before has made; nothing for one that waits. */
export function insertFirstStep(db: D1Database, jobId: string, now: number, leaseUntil: number): D1PreparedStatement {
  return db
    .prepare(`${INSERT_OUTBOX} WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND status = 'created')`)
    .bind(...valuesOf({ step: 'ingest', jobId }, now, leaseUntil));
}

/** Writes a message's row of a job that runs. */
export function insertWhileRunning(
  db: D1Database,
  message: OutboxMessage,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  return db
    .prepare(`${INSERT_OUTBOX} WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND status = 'running')`)
    .bind(...valuesOf(message, dueAt, leaseUntil));
}

/** Writes a message's row where the statement before has changed one; a row that is there already stays as it is. */
export function insertAfterChange(
  db: D1Database,
  message: OutboxMessage,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  return db.prepare(`${INSERT_OUTBOX} WHERE changes() = 1`).bind(...valuesOf(message, dueAt, leaseUntil));
}

/** The webhook message of a job that has been ended two statements before; nothing when nothing was changed. */
export function insertWebhookAfterChange(
  db: D1Database,
  jobId: string,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  return db
    .prepare(`${INSERT_OUTBOX} FROM jobs WHERE id = ?2 AND webhook_url IS NOT NULL AND changes() = 1`)
    .bind(...valuesOf({ step: 'webhook', jobId, attempt: 0 }, dueAt, leaseUntil));
}

/** Steps of a job that has ended need no handling any more; its webhook does. */
export function deleteJobOutbox(db: D1Database, jobId: string): D1PreparedStatement {
  return db
    .prepare(
      `DELETE FROM outbox WHERE job_id = ?1 AND queue <> 'webhooks'
       AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status IN ('succeeded', 'failed', 'canceled'))`,
    )
    .bind(jobId);
}
