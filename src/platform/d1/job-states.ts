import { LEASE_MS } from '../../jobs/dispatch.ts';
import { billOf } from '../../jobs/end-job.ts';
import { type JobStep, outboxId, queueOf } from '../../jobs/job-messages.ts';
import type { IngestedLength, JobRecord } from '../../jobs/job-record.ts';
import type { DeletedJob } from '../../jobs/job-store.ts';
import { hasCreditFor, releaseWork, WORK_OF_JOB } from './account-limits.ts';
import { deleteJobOutbox, hasChanged, insertWebhookAfterChange } from './statements.ts';

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

/** Ends a job that still works, with its webhook message; nothing is billed. False when it has ended before. */
export async function endWithoutResult(
  db: D1Database,
  jobId: string,
  status: 'failed' | 'canceled',
  error: { readonly code: string; readonly message: string },
  now: number,
): Promise<boolean> {
  const results = await db.batch([
    db
      .prepare(
        `UPDATE jobs SET status = ?2, error_code = ?3, error_message = ?4, completed_at = ?5, updated_at = ?5
         WHERE id = ?1 AND status IN ('created', 'pending', 'running')`,
      )
      .bind(jobId, status, error.code, error.message, now),
    releaseWork(db, jobId),
    insertWebhookAfterChange(db, jobId, now, now + LEASE_MS),
    deleteJobOutbox(db, jobId),
  ]);
  return hasChanged(results);
}

/**
 * Makes a job's row a tombstone without content, so that its usage record and the steps that still come for it find it
 * ended. Its messages go, the webhook's too, and its idempotency key is free again.
 *
 * @returns false when the account has no such job
 */
export async function removeJob(db: D1Database, accountId: string, jobId: string, now: number): Promise<boolean> {
  const [, ...results] = await db.batch([
    db
      .prepare(
        `UPDATE accounts SET work_seconds = MAX(0, work_seconds - ${WORK_OF_JOB})
         WHERE id = ?2 AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND account_id = ?2 AND completed_at IS NULL)`,
      )
      .bind(jobId, accountId),
    db
      .prepare(
        `UPDATE jobs SET
           status = CASE WHEN status IN ('created', 'pending', 'running') THEN 'canceled' ELSE status END,
           request = '{}', metadata = NULL, webhook_url = NULL, output_key = NULL, duration_seconds = NULL,
           error_code = NULL, error_message = NULL,
           completed_at = COALESCE(completed_at, ?3), updated_at = ?3, deleted_at = ?3, cleaned_at = NULL
         WHERE id = ?1 AND account_id = ?2 AND deleted_at IS NULL`,
      )
      .bind(jobId, accountId, now),
    db
      .prepare(
        `DELETE FROM outbox WHERE job_id = ?1
         AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND account_id = ?2 AND deleted_at IS NOT NULL)`,
      )
      .bind(jobId, accountId),
    db.prepare('DELETE FROM idempotency_keys WHERE job_id = ?1 AND account_id = ?2').bind(jobId, accountId),
  ]);
  return hasChanged(results);
}

/**
 * Deleted jobs whose objects have not been looked for one last time, those that were deleted first in front.
 *
 * @param after the last of those that are known
 */
export async function deletedJobs(
  db: D1Database,
  limit: number,
  after: DeletedJob = { id: '', deletedAt: 0 },
): Promise<DeletedJob[]> {
  const { results } = await db
    .prepare(
      `SELECT id, deleted_at AS deletedAt FROM jobs
       WHERE deleted_at >= ?2 AND (deleted_at, id) > (?2, ?3) AND cleaned_at IS NULL ORDER BY deleted_at, id LIMIT ?1`,
    )
    .bind(limit, after.deletedAt, after.id)
    .all<DeletedJob>();
  return results;
}
