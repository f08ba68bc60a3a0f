import type { ContractService } from './service.ts';

export interface StoredJob {
  readonly id: string;
  readonly status: string;
  readonly kind?: string;
  readonly completedAt?: number;
  readonly output?: string;
  readonly error?: { readonly code: string; readonly message: string };
  readonly accountId?: string;
  readonly createdAt?: number;
  readonly url?: string;
  readonly metadata?: Record<string, string>;
  readonly webhook?: string;
}

/** Writes a job in a given state to the database: the API reaches some states only after hours or failures. */
export async function storeJob(service: ContractService, job: StoredJob): Promise<void> {
  const { id, status, output, error, metadata } = job;
  const url = job.url ?? 'https://example.com/talk.mp3';
  const createdAt = job.createdAt ?? 1_750_000_000_123;
  const isDone = ['succeeded', 'failed', 'canceled'].includes(status);
  if (output !== undefined) await service.bucket.put(`outputs/${id}.json`, output);
  await service.run(
    `INSERT INTO jobs (id, account_id, kind, status, request, metadata, webhook_url, created_at, updated_at,
       completed_at, output_key, error_code, error_message)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    job.accountId ?? service.main.accountId,
    job.kind ?? 'diarize',
    status,
    JSON.stringify({ url, metadata }),
    metadata ? JSON.stringify(metadata) : null,
    job.webhook ?? null,
    createdAt,
    createdAt,
    job.completedAt ?? (isDone ? Date.now() : null),
    output === undefined ? null : `outputs/${id}.json`,
    error?.code ?? null,
    error?.message ?? null,
  );
}
