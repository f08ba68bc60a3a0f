import type { Result } from '../audio/audio-ports.ts';
import type { JobPage, JobStatus } from './app-services.ts';
import type { JobPorts, ListPosition } from './ports.ts';

/** Makes and reads the opaque texts that stand for a place in one account's list with one filter. */
export interface CursorPort {
  sign(scope: { accountId: string; status?: JobStatus }, position: ListPosition): Promise<string>;
  /** undefined for a text that is no cursor of this list */
  read(scope: { accountId: string; status?: JobStatus }, cursor: string): Promise<ListPosition | undefined>;
}

/** A page of an account's jobs, newest first. Jobs that come in meanwhile shift nothing: a page begins behind a job, not at a number. */
export async function listJobs(
  store: JobPorts['store'],
  cursors: CursorPort,
  accountId: string,
  query: { readonly limit: number; readonly status?: JobStatus; readonly cursor?: string },
): Promise<Result<JobPage, { kind: 'bad_cursor' }>> {
  const { limit, status, cursor } = query;
  const scope = { accountId, status };
  const after = cursor === undefined ? undefined : await cursors.read(scope, cursor);
  if (cursor !== undefined && !after) return { ok: false, error: { kind: 'bad_cursor' } };
  // One more than asked for tells whether there is a next page.
  const found = await store.list(accountId, { status, after, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const nextCursor = last && found.length > limit ? await cursors.sign(scope, last) : undefined;
  return { ok: true, value: { items, nextCursor } };
}
