import { type Message, outboxId, queueOf, shardMessages } from '../../jobs/messages.ts';

/** Whether the first statement of a batch changed its row: those after it hang on that. */
export function hasChanged([first]: readonly D1Result[]): boolean {
  return first.meta.changes === 1;
}

/** Of a deleted job there is nothing to read. */
export function selectJob(db: D1Database, jobId: string): D1PreparedStatement {
  return db.prepare('SELECT * FROM jobs WHERE id = ?1 AND deleted_at IS NULL').bind(jobId);
}

/** Writes a message's row; a row that is there already stays as it is. */
export function insertOutbox(db: D1Database, message: Message, dueAt: number, leaseUntil: number): D1PreparedStatement {
  return db
    .prepare(
      `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
    )
    .bind(outboxId(message), message.jobId, queueOf(message), JSON.stringify(message), dueAt, leaseUntil);
}

/** The same, and nothing for a job that does not run (any more). */
export function insertOutboxWhileRunning(
  db: D1Database,
  message: Message,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND status = 'running')`,
    )
    .bind(outboxId(message), message.jobId, queueOf(message), JSON.stringify(message), dueAt, leaseUntil);
}

/**
 * The same for shards `[from, to)` in one statement: an invocation may make a thousand, and a day of audio has 288
 * shards.
 */
export function insertShardsWhileRunning(
  db: D1Database,
  jobId: string,
  from: number,
  to: number,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  const messages = shardMessages(jobId, from, to);
  const rows = messages.map((message) => [outboxId(message), queueOf(message), JSON.stringify(message)]);
  return db
    .prepare(
      `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
       SELECT value ->> 0, ?1, value ->> 1, value ->> 2, ?3, ?4 FROM json_each(?2)
       WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status = 'running')`,
    )
    .bind(jobId, JSON.stringify(rows), dueAt, leaseUntil);
}

/** The webhook message of a job that the statement before has just ended; nothing when it changed nothing. */
export function insertOutboxAfterChange(
  db: D1Database,
  jobId: string,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  const message: Message = { step: 'webhook', jobId, attempt: 0 };
  return db
    .prepare(
      `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
       SELECT ?1, ?2, 'webhooks', ?3, ?4, ?5 FROM jobs WHERE id = ?2 AND webhook_url IS NOT NULL AND changes() = 1`,
    )
    .bind(outboxId(message), jobId, JSON.stringify(message), dueAt, leaseUntil);
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
