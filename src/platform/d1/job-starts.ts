import { LEASE_MS } from '../../jobs/dispatch.ts';
import { type Message, outboxId } from '../../jobs/messages.ts';
import type { IngestedLength } from '../../jobs/ports.ts';
import { hasChanged, insertOutboxWhileRunning, insertShardsWhileRunning } from './statements.ts';

/** `JobStore.start` */
export async function startJob(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const result = await db
    .prepare(`UPDATE jobs SET status = 'running', updated_at = ?2 WHERE id = ?1 AND status IN ('created', 'pending')`)
    .bind(jobId, now)
    .run();
  return hasChanged([result]);
}

/** `JobStore.addShards` */
export async function addShards(
  db: D1Database,
  jobId: string,
  from: number,
  to: number,
  now: number,
): Promise<boolean> {
  const [, { results }] = await db.batch<{ id: string }>([
    insertShardsWhileRunning(db, jobId, from, to, now, now + LEASE_MS),
    db.prepare(`SELECT id FROM jobs WHERE id = ?1 AND status = 'running'`).bind(jobId),
  ]);
  return results.length === 1;
}

/** `JobStore.finishIngest` */
export async function finishIngest(
  db: D1Database,
  jobId: string,
  { from, shardCount, durationSeconds }: IngestedLength & { readonly from: number },
  now: number,
): Promise<boolean> {
  const results = await db.batch([
    db
      .prepare(
        `UPDATE jobs SET shard_count = ?2, duration_seconds = ?3, updated_at = ?4 WHERE id = ?1 AND status = 'running'`,
      )
      .bind(jobId, shardCount, durationSeconds, now),
    insertShardsWhileRunning(db, jobId, from, shardCount, now, now + LEASE_MS),
    db.prepare('DELETE FROM outbox WHERE id = ?1').bind(outboxId({ step: 'ingest', jobId })),
  ]);
  return hasChanged(results);
}

/** `JobStore.requestIngest` */
export async function requestIngest(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const message: Message = { step: 'ingest', jobId };
  const results = await db.batch([
    insertOutboxWhileRunning(db, message, now, now + LEASE_MS),
    db
      .prepare(
        `DELETE FROM outbox WHERE job_id = ?1 AND queue IN ('jobs', 'transcripts')
         AND EXISTS (SELECT 1 FROM outbox WHERE id = ?2)`,
      )
      .bind(jobId, outboxId(message)),
  ]);
  return hasChanged(results);
}

/** `JobStore.requestAssemble` */
export async function requestAssemble(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const message: Message = { step: 'assemble', jobId };
  const result = await db
    .prepare(
      `INSERT OR IGNORE INTO outbox (id, job_id, queue, body, due_at, lease_until)
       SELECT ?1, ?2, 'jobs', ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND status = 'running')
       AND NOT EXISTS (SELECT 1 FROM outbox WHERE id = ?6)`,
    )
    .bind(
      outboxId(message),
      jobId,
      JSON.stringify(message),
      now,
      now + LEASE_MS,
      outboxId({ step: 'transcribe', jobId }),
    )
    .run();
  return hasChanged([result]);
}

/** `JobStore.requestTranscribe` */
export async function requestTranscribe(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const message: Message = { step: 'transcribe', jobId };
  const results = await db.batch([
    insertOutboxWhileRunning(db, message, now, now + LEASE_MS),
    db
      .prepare('DELETE FROM outbox WHERE id = ?1 AND EXISTS (SELECT 1 FROM outbox WHERE id = ?2)')
      .bind(outboxId({ step: 'assemble', jobId }), outboxId(message)),
  ]);
  return hasChanged(results);
}
