import type { DeletedJob, JobRetention } from '../../jobs/job-store.ts';
import { forget } from './usage-records.ts';

/** `JobRetention` over D1. */
export function retentionOf(db: D1Database): JobRetention {
  return {
    async runningSince(before, limit) {
      const { results } = await db.prepare(RUNNING_SQL).bind(before, limit).all<{ id: string }>();
      return results.map(({ id }) => id);
    },

    async expired(before, limit) {
      const { results } = await db
        .prepare(EXPIRED_SQL)
        .bind(before, limit)
        .all<{ id: string; output_key: string | null }>();
      return results.map((row) => ({ id: row.id, outputKey: row.output_key ?? undefined }));
    },

    deleted: (limit, after) => deletedJobs(db, limit, after),

    async markCleaned(jobIds, now) {
      await db
        .prepare(
          `UPDATE jobs SET cleaned_at = ?2, error_code = NULL, error_message = NULL,
             request = json_remove(request, '$.url', '$.webhook'),
             webhook_url = CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE job_id = jobs.id) THEN webhook_url END
           WHERE id IN (SELECT value FROM json_each(?1))`,
        )
        .bind(JSON.stringify(jobIds), now)
        .run();
    },

    async unfinished(jobIds) {
      const { results } = await db
        .prepare(
          `SELECT id FROM jobs
           WHERE id IN (SELECT value FROM json_each(?1)) AND status IN ('created', 'pending', 'running')`,
        )
        .bind(JSON.stringify(jobIds))
        .all<{ id: string }>();
      return new Set(results.map((row) => row.id));
    },

    async expiredMedia(now, limit) {
      const { results } = await db.prepare(EXPIRED_MEDIA_SQL).bind(now, limit).all<{ object_key: string }>();
      return results.map((row) => row.object_key);
    },

    async removeMedia(objectKeys) {
      await db
        .prepare('DELETE FROM media WHERE object_key IN (SELECT value FROM json_each(?1))')
        .bind(JSON.stringify(objectKeys))
        .run();
    },

    async expireIdempotencyKeys(before) {
      await db.prepare('DELETE FROM idempotency_keys WHERE created_at <= ?1').bind(before).run();
    },

    forget: (endedBefore, limit) => forget(db, endedBefore, limit),
  };
}

export const RUNNING_SQL = `SELECT id FROM jobs
  WHERE status = 'running' AND started_at <= ?1 ORDER BY started_at LIMIT ?2`;

export const EXPIRED_SQL = `SELECT id, output_key FROM jobs
  WHERE completed_at <= ?1 AND cleaned_at IS NULL AND deleted_at IS NULL ORDER BY completed_at LIMIT ?2`;

/** A job reads the object that had the name when the job was created, unless it had expired by then. */
export const EXPIRED_MEDIA_SQL = `SELECT object_key FROM media
  WHERE expires_at <= ?1 AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.account_id = media.account_id AND completed_at IS NULL
      AND substr(json_extract(request, '$.url'), 1, 8) = 'media://'
      AND json_extract(request, '$.url') = 'media://' || COALESCE(media.former_name, media.name)
      AND jobs.created_at < media.expires_at
  ) ORDER BY expires_at LIMIT ?2`;

/**
 * Deleted jobs before the final deletion of their objects, in order of their deletion.
 *
 * @param after the last job of the previous page
 */
async function deletedJobs(
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
