import type { JobKind, JobStatus } from '../../jobs/app-services.ts';
import { messageSchema, type OutboxMessage } from '../../jobs/job-messages.ts';
import type { OutboxRow } from '../../jobs/job-ports.ts';
import type { JobRecord, StoredSpec } from '../../jobs/job-record.ts';

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

/** The job of a row of `jobs`; what is null there is absent. */
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

/** undefined for a row that this version of the service cannot read */
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
