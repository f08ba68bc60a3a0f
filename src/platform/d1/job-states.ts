import { LEASE_MS } from '../../jobs/dispatch.ts';
import { billOf } from '../../jobs/end-job.ts';
import { type JobStep, outboxId, queueOf } from '../../jobs/job-messages.ts';
import type { IngestedLength, JobRecord } from '../../jobs/job-record.ts';
import type { JobEndings, JobIngest } from '../../jobs/job-store.ts';
import { hasCreditFor, releaseWork, WORK_OF_JOB } from './account-limits.ts';
import { deleteJobOutbox, hasChanged, insertWebhookAfterChange } from './statements.ts';

/** `JobIngest` over D1. */
export const ingestOf = (db: D1Database): JobIngest => ({
  start: (jobId, now) => startJob(db, jobId, now),
  reserve: (job, seconds, now) => reserve(db, job, seconds, now),
  finishIngest: (job, recording, now) => finishIngest(db, job, recording, now),
});

/** `JobEndings` over D1. Statements that depend on an earlier one of their batch test `changes()`. */
export function endingsOf(db: D1Database): JobEndings {
  return {
    async succeed(jobId, outcome, now) {
      const results = await db.batch([
        db
          .prepare(
            `UPDATE jobs SET status = 'succeeded', output_key = ?2, completed_at = ?3, updated_at = ?3
             WHERE id = ?1 AND status = 'running'`,
          )
          .bind(jobId, outcome.outputKey, now),
        db
          .prepare(
            `INSERT OR IGNORE INTO usage_records (job_id, account_id, kind, billed_seconds, credit_seconds, created_at)
             SELECT id, account_id, kind, ?2, ?3, ?4 FROM jobs WHERE id = ?1 AND changes() = 1`,
          )
          .bind(jobId, outcome.billedSeconds, outcome.creditSeconds, now),
        ...(outcome.transcribedSeconds === undefined
          ? []
          : [recordTranscription(db, jobId, outcome.transcribedSeconds, now)]),
        chargeCredit(db, jobId, outcome.creditSeconds),
        insertWebhookAfterChange(db, jobId, now, now + LEASE_MS),
        deleteJobOutbox(db, jobId),
      ]);
      return hasChanged(results);
    },

    fail: (jobId, error, now) => endWithoutResult(db, jobId, 'failed', error, now),

    cancel: (jobId, error, now) => endWithoutResult(db, jobId, 'canceled', error, now),

    remove: (accountId, jobId, now) => removeJob(db, accountId, jobId, now),
  };
}

/** `JobStore.start` */
async function startJob(db: D1Database, jobId: string, now: number): Promise<boolean> {
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
async function reserve(
  db: D1Database,
  { id, accountId, kind }: JobRecord,
  seconds: number,
  now: number,
): Promise<boolean> {
  const result = await db
    .prepare(
      `UPDATE jobs SET duration_seconds = ?2
       WHERE id = ?1 AND status = 'running' AND ${hasCreditFor('?3', '?4', '?5', '?1')}`,
    )
    .bind(id, seconds, accountId, now, billOf(kind, seconds).creditSeconds)
    .run();
  return hasChanged([result]);
}

/** `JobStore.finishIngest` */
async function finishIngest(
  db: D1Database,
  { id, accountId, kind }: JobRecord,
  { shardCount, durationSeconds }: IngestedLength,
  now: number,
): Promise<boolean> {
  const ingest = outboxId({ step: 'ingest', jobId: id });
  const results = await db.batch([
    // First, while the job's row still has its estimated work.
    db
      .prepare(
        `UPDATE accounts
         SET work_seconds = work_seconds + ?2 - (SELECT COALESCE(work_seconds, ?2) FROM jobs WHERE id = ?1)
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

/** Updates the job's only outbox row, so that of two concurrent moves exactly one succeeds. */
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

/** Ends an unfinished job, with its webhook message; bills nothing. False if the job had ended before. */
async function endWithoutResult(
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
 * Replaces a job's row by a tombstone without content: its usage record refers to it, and steps that are still
 * delivered find the job ended. Deletes its messages, including the webhook's, and frees its idempotency key.
 *
 * @returns false when the account has no such job
 */
async function removeJob(db: D1Database, accountId: string, jobId: string, now: number): Promise<boolean> {
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
 * A separate usage record without credit, if the previous statement of the batch wrote the record of the job.
 */
function recordTranscription(db: D1Database, jobId: string, seconds: number, now: number): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, credit_seconds, created_at)
       SELECT ?1 || '/transcription', account_id, 'transcription', ?2, 0, ?3 FROM jobs WHERE id = ?1 AND changes() = 1`,
    )
    .bind(jobId, seconds, now);
}

/**
 * Subtracts a job's cost from the credit of an account without subscription, and the job from the account's work, if
 * the previous statement of the batch wrote the usage. Then it always changes the account's row, because the next
 * statement tests `changes()`.
 */
function chargeCredit(db: D1Database, jobId: string, creditSeconds: number): D1PreparedStatement {
  return db
    .prepare(
      `UPDATE accounts SET credit_seconds = credit_seconds - CASE subscribed WHEN 0 THEN ?2 ELSE 0 END,
         work_seconds = MAX(0, work_seconds - ${WORK_OF_JOB})
       WHERE changes() = 1 AND id = (SELECT account_id FROM jobs WHERE id = ?1)`,
    )
    .bind(jobId, creditSeconds);
}
