import type { JobStatus } from '../../jobs/app-services.ts';
import type { JobStore, ListedJob, ListPosition } from '../../jobs/job-store.ts';
import { signingVersions } from '../../jobs/webhook-signature.ts';
import { admissionOf } from './account-limits.ts';
import { creationOf } from './job-create.ts';
import { retentionOf } from './job-retention.ts';
import { endingsOf, ingestOf, nextStep } from './job-states.ts';
import { outboxOf } from './outbox.ts';
import { findJob } from './statements.ts';

/** Most audio that an account may have unfinished; further jobs wait. */
export const DEFAULT_WORK_HOURS = 200;

/** `JobStore` over D1. A D1 batch is one transaction. */
export function createJobStore(db: D1Database, maxWorkSeconds = DEFAULT_WORK_HOURS * 3600): JobStore {
  return {
    ...outboxOf(db),
    ...creationOf(db, maxWorkSeconds),
    ...admissionOf(db, maxWorkSeconds),
    ...ingestOf(db),
    ...endingsOf(db),
    ...retentionOf(db),
    find: (jobId) => findJob(db, jobId),
    async findOwned(accountId, jobId) {
      const job = await findJob(db, jobId);
      return job?.accountId === accountId ? job : undefined;
    },
    nextStep: (jobId, from, to, now) => nextStep(db, jobId, from, to, now),
    list: (accountId, query) => listJobs(db, accountId, query),

    async webhookSecretVersions(accountId, now) {
      const row = await db
        .prepare('SELECT webhook_secret_version, webhook_secret_rotated_at FROM accounts WHERE id = ?1')
        .bind(accountId)
        .first<{ webhook_secret_version: number; webhook_secret_rotated_at: number | null }>();
      return row ? signingVersions(row.webhook_secret_version, row.webhook_secret_rotated_at, now) : [];
    },
  };
}

/** Position before every job of the list. */
const BEGINNING: ListPosition = { createdAt: Number.MAX_SAFE_INTEGER, id: '' };

/** The text of the list's query; exported for a test of D1's query plan. */
export function listSql(withStatus: boolean): string {
  return `SELECT id, status, created_at FROM jobs
    WHERE account_id = ?1 AND deleted_at IS NULL AND (created_at, id) < (?2, ?3)${withStatus ? ' AND status = ?5' : ''}
    ORDER BY created_at DESC, id DESC LIMIT ?4`;
}

/** An account's jobs after a position of the list, newest first. Reads as many index entries as it returns. */
export async function listJobs(
  db: D1Database,
  accountId: string,
  query: { readonly status?: JobStatus; readonly after?: ListPosition; readonly limit: number },
): Promise<ListedJob[]> {
  const { status, after = BEGINNING, limit } = query;
  const { results } = await db
    .prepare(listSql(status !== undefined))
    .bind(accountId, after.createdAt, after.id, limit, ...(status === undefined ? [] : [status]))
    .all<{ id: string; status: JobStatus; created_at: number }>();
  return results.map((row) => ({ id: row.id, status: row.status, createdAt: row.created_at }));
}
