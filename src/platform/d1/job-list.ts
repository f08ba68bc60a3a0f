import type { JobStatus } from '../../jobs/app-services.ts';
import type { ListedJob, ListPosition } from '../../jobs/job-store.ts';

/** Comes before every job there is. */
const BEGINNING: ListPosition = { createdAt: Number.MAX_SAFE_INTEGER, id: '' };

/** The text of the list's query; exported so that a test can ask D1 how it would run it. */
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
