import type { Result } from '../../audio/audio-ports.ts';
import { LEASE_MS } from '../../jobs/dispatch.ts';
import type { JobRecord, StoredSpec } from '../../jobs/job-record.ts';
import { IDEMPOTENCY_TTL_MS, type JobCreation, type NewJob } from '../../jobs/job-store.ts';
import { beginsAtOnce, estimatedSeconds, hasCreditLeft } from './account-limits.ts';
import { findJob, insertFirstStep } from './statements.ts';

/** @param maxWorkSeconds most audio that an account may have unfinished */
export function creationOf(db: D1Database, maxWorkSeconds: number): JobCreation {
  return {
    create: (input) => create(db, input, maxWorkSeconds),

    async findReplay(accountId, idempotencyKey, now) {
      const row = await selectReplay(db, accountId, idempotencyKey, now - IDEMPOTENCY_TTL_MS);
      return row ? { jobId: row.job_id, bodyHash: row.body_hash } : undefined;
    },
  };
}

const MAX_CREATE_TRIES = 3;
/**
 * Without credit the INSERT computes a NULL status, which violates NOT NULL and rolls the whole batch back, including
 * idempotency key and message.
 */
const UNPAID = /NOT NULL constraint failed: jobs\.status/;

async function create(
  db: D1Database,
  input: NewJob,
  maxWorkSeconds: number,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  const { id, accountId, kind, request, idempotency, now } = input;
  const seconds = estimatedSeconds(kind);
  const statements = [
    db
      .prepare(
        `INSERT INTO jobs (
           id, account_id, kind, status, work_seconds, request, webhook_url, webhook_status_only, created_at, updated_at
         )
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
      // The row is not read back: if that read failed, the call would fail although the job runs and is billed.
      return { ok: true, value: newRecord(input, results.at(-1)?.meta.changes === 1) };
    } catch (error) {
      const earlier = idempotency && (await selectReplay(db, accountId, idempotency.key, now - IDEMPOTENCY_TTL_MS));
      if (earlier && earlier.body_hash !== idempotency.bodyHash) {
        return { ok: false, error: { kind: 'idempotency_conflict' } };
      }
      // Without an earlier job: the batch may have succeeded although its answer was lost.
      const job = await findJob(db, earlier?.job_id ?? id);
      if (job) return { ok: true, value: job };
      if (UNPAID.test(String(error))) return { ok: false, error: { kind: 'payment_required' } };
      // Another call had used the key, and its job was deleted meanwhile: the key is free.
      if (!idempotency || tries === MAX_CREATE_TRIES) throw error;
    }
  }
}

/** The record of a job that was just stored. */
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
