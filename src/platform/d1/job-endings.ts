import { LEASE_MS } from '../../jobs/dispatch.ts';
import type { DeletedJob } from '../../jobs/job-ports.ts';
import { releaseWork, WORK_OF_JOB } from './admission.ts';
import { deleteJobOutbox, hasChanged, insertWebhookAfterChange } from './statements.ts';

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
