import type { Result } from '../../audio/types.ts';
import { LEASE_MS } from '../../jobs/dispatch.ts';
import type { JobRecord, StoredSpec } from '../../jobs/job-record.ts';
import { IDEMPOTENCY_TTL_MS, type JobStore, type NewJob } from '../../jobs/job-store.ts';
import { signingVersions } from '../../jobs/webhook-signature.ts';
import {
  admit,
  beginsAtOnce,
  estimatedSeconds,
  hasCreditLeft,
  WORK_OF_JOB,
  waitingAccounts,
} from './account-limits.ts';
import { listJobs } from './job-list.ts';
import { deletedJobs, endWithoutResult, finishIngest, nextStep, removeJob, reserve, startJob } from './job-states.ts';
import { outboxOf } from './outbox.ts';
import {
  deleteJobOutbox,
  hasChanged,
  insertFirstStep,
  insertWebhookAfterChange,
  type JobRow,
  jobFromRow,
  selectJob,
} from './statements.ts';
import { forget } from './usage-records.ts';

/** Audio that an account has in work at most; what it asks for beyond that waits. */
export const DEFAULT_WORK_HOURS = 200;

/** `JobStore` over D1. A D1 batch is one transaction; statements that depend on an earlier one test `changes()`. */
export function createJobStore(db: D1Database, maxWorkSeconds = DEFAULT_WORK_HOURS * 3600): JobStore {
  const find = async (jobId: string): Promise<JobRecord | undefined> => {
    const row = await selectJob(db, jobId).first<JobRow>();
    return row ? jobFromRow(row) : undefined;
  };
  return {
    ...outboxOf(db),
    find,
    create: (input) => create(db, find, input, maxWorkSeconds),

    async findOwned(accountId, jobId) {
      const job = await find(jobId);
      return job?.accountId === accountId ? job : undefined;
    },

    start: (jobId, now) => startJob(db, jobId, now),
    reserve: (job, seconds, now) => reserve(db, job, seconds, now),
    finishIngest: (job, recording, now) => finishIngest(db, job, recording, now),
    nextStep: (jobId, from, to, now) => nextStep(db, jobId, from, to, now),
    admit: (accountId, now) => admit(db, accountId, maxWorkSeconds, now),
    waitingAccounts: (limit, after) => waitingAccounts(db, limit, after, maxWorkSeconds),

    async sweepPosition(sweep) {
      const row = db.prepare('SELECT position FROM sweep_positions WHERE sweep = ?1').bind(sweep);
      return (await row.first<string>('position')) ?? '';
    },

    async setSweepPosition(sweep, position) {
      await db
        .prepare(
          `INSERT INTO sweep_positions (sweep, position) VALUES (?1, ?2)
           ON CONFLICT DO UPDATE SET position = excluded.position`,
        )
        .bind(sweep, position)
        .run();
    },

    async runningSince(before, limit) {
      const { results } = await db.prepare(RUNNING_SQL).bind(before, limit).all<{ id: string }>();
      return results.map(({ id }) => id);
    },

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
    deleted: (limit, after) => deletedJobs(db, limit, after),
    list: (accountId, query) => listJobs(db, accountId, query),

    async findReplay(accountId, idempotencyKey, now) {
      const row = await selectReplay(db, accountId, idempotencyKey, now - IDEMPOTENCY_TTL_MS);
      return row ? { jobId: row.job_id, bodyHash: row.body_hash } : undefined;
    },

    async expired(before, limit) {
      const { results } = await db
        .prepare(EXPIRED_SQL)
        .bind(before, limit)
        .all<{ id: string; output_key: string | null }>();
      return results.map((row) => ({ id: row.id, outputKey: row.output_key ?? undefined }));
    },

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

    async webhookSecretVersions(accountId, now) {
      const row = await db
        .prepare('SELECT webhook_secret_version, webhook_secret_rotated_at FROM accounts WHERE id = ?1')
        .bind(accountId)
        .first<{ webhook_secret_version: number; webhook_secret_rotated_at: number | null }>();
      return row ? signingVersions(row.webhook_secret_version, row.webhook_secret_rotated_at, now) : [];
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

/** A job reads the object that had the name when the job was created, and had not expired then. */
export const EXPIRED_MEDIA_SQL = `SELECT object_key FROM media
  WHERE expires_at <= ?1 AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.account_id = media.account_id AND completed_at IS NULL
      AND substr(json_extract(request, '$.url'), 1, 8) = 'media://'
      AND json_extract(request, '$.url') = 'media://' || COALESCE(media.former_name, media.name)
      AND jobs.created_at < media.expires_at
  ) ORDER BY expires_at LIMIT ?2`;

const MAX_CREATE_TRIES = 3;
/**
 * A job that the account has no credit left for would get no status, so that the whole batch, with its key and its
 * message, comes to nothing.
 */
const UNPAID = /NOT NULL constraint failed: jobs\.status/;

async function create(
  db: D1Database,
  find: (jobId: string) => Promise<JobRecord | undefined>,
  input: NewJob,
  maxWorkSeconds: number,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  const { id, accountId, kind, request, idempotency, now } = input;
  const seconds = estimatedSeconds(kind);
  const statements = [
    db
      .prepare(
        `INSERT INTO jobs (id, account_id, kind, status, work_seconds, request, webhook_url, webhook_status_only, created_at, updated_at)
         SELECT ?1, ?2, ?3, CASE WHEN isPaid THEN CASE WHEN beginsAtOnce THEN 'created' ELSE 'pending' END END,
           CASE WHEN beginsAtOnce THEN ?8 END, ?4, ?5, ?6, ?7, ?7
         FROM (
           SELECT (?10 OR ${hasCreditLeft('?2', '?7')}) AS isPaid, ${beginsAtOnce('?2', '?8', '?9')} AS beginsAtOnce
         )`,
      )
      .bind(
        id,
        accountId,
        kind,
        JSON.stringify(request),
        request.webhook ?? null,
        request.webhookStatusOnly ? 1 : 0,
        now,
        seconds,
        maxWorkSeconds,
        // A recount costs nothing.
        'recountOf' in request && request.recountOf !== undefined ? 1 : 0,
      ),
    insertFirstStep(db, id, now, now + LEASE_MS),
    db
      .prepare('UPDATE accounts SET work_seconds = work_seconds + ?2 WHERE id = ?1 AND changes() = 1')
      .bind(accountId, seconds),
  ];
  if (idempotency) {
    // First, so that its primary key decides a race before anything else is written.
    statements.unshift(
      db
        .prepare('DELETE FROM idempotency_keys WHERE account_id = ?1 AND idempotency_key = ?2 AND created_at <= ?3')
        .bind(accountId, idempotency.key, now - IDEMPOTENCY_TTL_MS),
      db
        .prepare(
          `INSERT INTO idempotency_keys (account_id, idempotency_key, body_hash, job_id, created_at)
           VALUES (?1, ?2, ?3, ?4, ?5)`,
        )
        .bind(accountId, idempotency.key, idempotency.bodyHash, id, now),
    );
  }
  for (let tries = 1; ; tries++) {
    try {
      const results = await db.batch(statements);
      // Not read back: a look that fails would have the call fail for a job that runs and is billed.
      return { ok: true, value: newRecord(input, results.at(-1)?.meta.changes === 1) };
    } catch (error) {
      const earlier = idempotency && (await selectReplay(db, accountId, idempotency.key, now - IDEMPOTENCY_TTL_MS));
      if (earlier && earlier.body_hash !== idempotency.bodyHash) {
        return { ok: false, error: { kind: 'idempotency_conflict' } };
      }
      // Its own where the answer to the batch was lost: what is stored has been made.
      const job = await find(earlier?.job_id ?? id);
      if (job) return { ok: true, value: job };
      if (UNPAID.test(String(error))) return { ok: false, error: { kind: 'payment_required' } };
      // Another call's key was in the way, and its job has been deleted since: the key is free now.
      if (!idempotency || tries === MAX_CREATE_TRIES) throw error;
    }
  }
}

/** The record that a new job has been stored as. */
function newRecord({ id, accountId, kind, request, now }: NewJob, beginsNow: boolean): JobRecord {
  return {
    id,
    accountId,
    ...({ kind, request } as StoredSpec),
    status: beginsNow ? 'created' : 'pending',
    webhookUrl: request.webhook ?? undefined,
    webhookStatusOnly: request.webhookStatusOnly === true,
    createdAt: now,
    updatedAt: now,
  };
}

function selectReplay(db: D1Database, accountId: string, key: string, createdAfter: number) {
  return db
    .prepare(
      `SELECT body_hash, job_id FROM idempotency_keys
       WHERE account_id = ?1 AND idempotency_key = ?2 AND created_at > ?3`,
    )
    .bind(accountId, key, createdAfter)
    .first<{ body_hash: string; job_id: string }>();
}

/**
 * A line of its own in the usage, which costs no more credit, where the statement before has written that of the job.
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
 * Takes what a job costs from the credit of an account without subscription, and the job from the account's work, where
 * the statement before has written the usage. The account's row is changed in any case, since what comes after hangs on
 * that.
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
