import { LEASE_MS } from '../../jobs/dispatch.ts';
import { billOf } from '../../jobs/end-job.ts';
import { type JobStep, outboxId, queueOf } from '../../jobs/job-messages.ts';
import type { IngestedLength, JobRecord } from '../../jobs/job-record.ts';
import { hasCreditFor } from './credit.ts';
import { hasChanged } from './statements.ts';

/** `JobStore.start` */
export async function startJob(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const result = await db
    .prepare(
      `UPDATE jobs SET status = 'running', started_at = ?2, updated_at = ?2
       WHERE id = ?1 AND status IN ('created', 'pending')`,
    )
    .bind(jobId, now)
    .run();
  return hasChanged([result]);
}

/** `JobStore.reserve` */
export async function reserve(
  db: D1Database,
  { id, accountId, kind }: JobRecord,
  seconds: number,
  now: number,
): Promise<boolean> {
  const result = await db
    .prepare(
      `UPDATE jobs SET duration_seconds = ?2 WHERE id = ?1 AND status = 'running' AND ${hasCreditFor('?3', '?4', '?5', '?1')}`,
    )
    .bind(id, seconds, accountId, now, billOf(kind, seconds).creditSeconds)
    .run();
  return hasChanged([result]);
}

/** `JobStore.finishIngest` */
export async function finishIngest(
  db: D1Database,
  { id, accountId, kind }: JobRecord,
  { shardCount, durationSeconds }: IngestedLength,
  now: number,
): Promise<boolean> {
  const ingest = outboxId({ step: 'ingest', jobId: id });
  const results = await db.batch([
    // First, while the job's row still has what it counted for.
    db
      .prepare(
        `UPDATE accounts SET work_seconds = work_seconds + ?2 - (SELECT COALESCE(work_seconds, ?2) FROM jobs WHERE id = ?1)
         WHERE id = ?3 AND EXISTS (SELECT 1 FROM outbox WHERE id = ?6) AND ${hasCreditFor('?3', '?4', '?5', '?1')}`,
      )
      .bind(id, durationSeconds, accountId, now, billOf(kind, durationSeconds).creditSeconds, ingest),
    db
      .prepare(
        `UPDATE jobs SET shard_count = ?2, duration_seconds = ?3, work_seconds = ?3, started_at = ?4, updated_at = ?4
         WHERE id = ?1 AND changes() = 1`,
      )
      .bind(id, shardCount, durationSeconds, now),
    moveStep(db, id, ['ingest'], 'analyse', now, 'AND changes() = 1'),
  ]);
  return hasChanged(results);
}

/** `JobStore.nextStep` */
export async function nextStep(
  db: D1Database,
  jobId: string,
  from: readonly JobStep[],
  to: JobStep,
  now: number,
): Promise<boolean> {
  return hasChanged([await moveStep(db, jobId, from, to, now).run()]);
}

/** The row itself is moved: a job has one, and of two who move it one does. */
function moveStep(
  db: D1Database,
  jobId: string,
  from: readonly JobStep[],
  to: JobStep,
  now: number,
  condition = '',
): D1PreparedStatement {
  const message = { step: to, jobId };
  return db
    .prepare(
      `UPDATE outbox SET id = ?1, queue = ?2, body = ?3, due_at = ?4, lease_until = ?5, starts = 0
       WHERE id IN (SELECT value FROM json_each(?6)) ${condition}`,
    )
    .bind(
      outboxId(message),
      queueOf(message),
      JSON.stringify(message),
      now,
      now + LEASE_MS,
      JSON.stringify(from.map((step) => outboxId({ step, jobId }))),
    );
}
