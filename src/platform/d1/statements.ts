import type { JobKind, JobStatus } from '../../jobs/app-services.ts';
import { messageSchema, type OutboxMessage, outboxId, queueOf } from '../../jobs/job-messages.ts';
import type { JobRecord, StoredSpec } from '../../jobs/job-record.ts';
import type { OutboxRow } from '../../jobs/job-store.ts';

/** A row of `jobs` as D1 returns it. */
export interface JobRow {
  readonly id: string;
  readonly account_id: string;
  readonly kind: JobKind;
  readonly status: JobStatus;
  readonly request: string;
  readonly webhook_url: string | null;
  readonly webhook_status_only: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly completed_at: number | null;
  readonly shard_count: number | null;
  readonly duration_seconds: number | null;
  readonly output_key: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
}

/** The job of a row of `jobs`; NULL columns become absent. */
export function jobFromRow(row: JobRow): JobRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    ...({ kind: row.kind, request: JSON.parse(row.request) } as StoredSpec),
    status: row.status,
    webhookUrl: row.webhook_url ?? undefined,
    webhookStatusOnly: row.webhook_status_only === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    completedAt: row.completed_at ?? undefined,
    shardCount: row.shard_count ?? undefined,
    durationSeconds: row.duration_seconds ?? undefined,
    outputKey: row.output_key ?? undefined,
    error:
      row.error_code !== null && row.error_message !== null
        ? { code: row.error_code, message: row.error_message }
        : undefined,
  };
}

/** A row of `outbox` as D1 returns it. */
export interface OutboxDbRow {
  readonly id: string;
  readonly job_id: string;
  readonly queue: string;
  readonly body: string;
  readonly due_at: number;
  readonly lease_until: number;
  readonly starts: number;
}

/** Undefined for a row that this version of the service cannot read. */
export function outboxFromRow(row: OutboxDbRow): OutboxRow | undefined {
  const message = readMessage(row.body);
  if (!message) return undefined;
  return {
    id: row.id,
    message,
    dueAt: row.due_at,
    leaseUntil: row.lease_until,
    starts: row.starts,
  };
}

function readMessage(body: string): OutboxMessage | undefined {
  try {
    const message = messageSchema.safeParse(JSON.parse(body)).data;
    return message?.step === 'shard' ? undefined : message;
  } catch {
    return undefined;
  }
}

/** Whether the first statement of a batch changed its row; the later ones depend on it. */
export function hasChanged([first]: readonly D1Result[]): boolean {
  return first.meta.changes === 1;
}

export function selectJob(db: D1Database, jobId: string): D1PreparedStatement {
  return db.prepare('SELECT * FROM jobs WHERE id = ?1 AND deleted_at IS NULL').bind(jobId);
}

const INSERT_OUTBOX = `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
  SELECT ?1, ?2, ?3, ?4, ?5, ?6`;

const valuesOf = (message: OutboxMessage, dueAt: number, leaseUntil: number) =>
  [outboxId(message), message.jobId, queueOf(message), JSON.stringify(message), dueAt, leaseUntil] as const;

/** Inserts the first message of a job that the previous statement created; nothing for a job that waits. */
export function insertFirstStep(db: D1Database, jobId: string, now: number, leaseUntil: number): D1PreparedStatement {
  return db
    .prepare(`${INSERT_OUTBOX} WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND status = 'created')`)
    .bind(...valuesOf({ step: 'ingest', jobId }, now, leaseUntil));
}

/** Inserts a message if its job is running. */
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

/** Inserts a message if the previous statement changed a row; an existing message stays as it is. */
export function insertAfterChange(
  db: D1Database,
  message: OutboxMessage,
  dueAt: number,
  leaseUntil: number,
): D1PreparedStatement {
  return db.prepare(`${INSERT_OUTBOX} WHERE changes() = 1`).bind(...valuesOf(message, dueAt, leaseUntil));
}

/** Inserts the webhook message of an ended job if the previous statement changed a row. */
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

/** Deletes the steps of a job that has ended, but not its webhook. */
export function deleteJobOutbox(db: D1Database, jobId: string): D1PreparedStatement {
  return db
    .prepare(
      `DELETE FROM outbox WHERE job_id = ?1 AND queue <> 'webhooks'
       AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status IN ('succeeded', 'failed', 'canceled'))`,
    )
    .bind(jobId);
}

/** Undefined for an unknown or deleted job. */
export async function findJob(db: D1Database, jobId: string): Promise<JobRecord | undefined> {
  const row = await selectJob(db, jobId).first<JobRow>();
  return row ? jobFromRow(row) : undefined;
}
