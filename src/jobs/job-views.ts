import type { Result } from '../audio/audio-ports.ts';
import type { JobPage, JobStatus, JobView, JobWatchItem } from './app-services.ts';
import { LEASE_MS } from './dispatch.ts';
import { MAX_FAULTS } from './faults.ts';
import { isTerminal } from './job-record.ts';
import type { JobLists, ListPosition, OutboxRow } from './job-store.ts';

/** Signs and reads cursors: opaque texts for a position in one account's list with one filter. */
export interface CursorPort {
  sign(scope: { accountId: string; status?: JobStatus }, position: ListPosition): Promise<string>;
  /** undefined for a text that is no cursor of this list */
  read(scope: { accountId: string; status?: JobStatus }, cursor: string): Promise<ListPosition | undefined>;
}

/**
 * A page of an account's jobs, newest first. A page begins after a job, not at an index, so that new jobs shift no
 * page.
 */
export async function listJobs(
  store: JobLists,
  cursors: CursorPort,
  accountId: string,
  query: { readonly limit: number; readonly status?: JobStatus; readonly cursor?: string },
): Promise<Result<JobPage, { kind: 'bad_cursor' }>> {
  const { limit, status, cursor } = query;
  const scope = { accountId, status };
  const after = cursor === undefined ? undefined : await cursors.read(scope, cursor);
  if (cursor !== undefined && !after) return { ok: false, error: { kind: 'bad_cursor' } };
  // One more than requested shows whether there is a next page.
  const found = await store.list(accountId, { status, after, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const nextCursor = last && found.length > limit ? await cursors.sign(scope, last) : undefined;
  return { ok: true, value: { items, nextCursor } };
}

/**
 * Number of the attempt to read a job's recording, from the second one on.
 * @param row outbox row of the step `ingest`
 */
export function attemptToRead(row: OutboxRow | undefined, now: number): JobView['attempt'] {
  if (!row) return undefined;
  // A step in work is also due in the future, in case it crashes; a message in a queue has a longer lease.
  const isWaiting = row.dueAt > now && row.leaseUntil - row.dueAt > LEASE_MS;
  // `starts` does not yet count the attempt that the step waits for.
  const number = isWaiting ? row.starts + 1 : row.starts;
  return number > 1 ? { number: Math.min(number, MAX_FAULTS), of: MAX_FAULTS } : undefined;
}

/** A watcher reads the job every second while it changes, otherwise at growing intervals. */
export const MIN_POLL_MS = 1000;
export const MAX_POLL_MS = 5000;
/** Proxies close connections that are silent for a minute. */
export const HEARTBEAT_MS = 15_000;
/** After this time the client connects again with the id of its last event. */
export const MAX_WATCH_MS = 15 * 60_000;

/** Event ids rise with the job's progress: the rank of the state times this, plus thousandths of the progress. */
const STATE_STEP = 10_000;
const STATE_RANK = { created: 0, pending: 1, running: 2, succeeded: 3, failed: 3, canceled: 3 } as const;
/** Id of the last event: how the job ended. */
export const FINAL_EVENT_ID = STATE_RANK.succeeded * STATE_STEP;

export interface WatchDependencies {
  /** The current job; undefined if it was deleted. */
  readonly read: () => Promise<JobView | undefined>;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * Yields each event of a job once: its states and, while it runs, its progress. Ends when the job ends or is deleted,
 * when `isOpen` returns false (the client has disconnected or lost its rights), and after a quarter of an hour.
 *
 * An event's id follows from its state and progress, so a watcher can continue in any isolate.
 *
 * @param afterId id of the last event that the watcher has; -1 for none
 */
export async function* watchJob(
  { read, now, sleep }: WatchDependencies,
  afterId: number,
  isOpen: () => boolean | Promise<boolean>,
): AsyncGenerator<JobWatchItem> {
  const startedAt = now();
  let sentAt = startedAt;
  let lastId = afterId;
  let pauseMs = MIN_POLL_MS;
  while ((await isOpen()) && now() - startedAt < MAX_WATCH_MS) {
    const job = await read();
    if (!job) return;
    const events = eventsOf(job).filter(({ id }) => id > lastId);
    for (const event of events) {
      lastId = event.id;
      yield event;
    }
    if (isTerminal(job.status)) return;
    if (events.length > 0) {
      sentAt = now();
      pauseMs = MIN_POLL_MS;
    } else if (now() - sentAt >= HEARTBEAT_MS) {
      sentAt = now();
      yield { kind: 'heartbeat' };
    }
    await sleep(pauseMs);
    pauseMs = Math.min(MAX_POLL_MS, pauseMs * 1.5);
  }
}

/** Events of a job in this state, in the order of their ids. */
function eventsOf(job: JobView): (JobWatchItem & { kind: 'status' | 'progress' })[] {
  const id = STATE_RANK[job.status] * STATE_STEP;
  const status = { kind: 'status', id, job } as const;
  if (job.status === 'succeeded') {
    const doneId = STATE_RANK.running * STATE_STEP + 1000;
    return [{ kind: 'progress', id: doneId, jobId: job.id, progress: 1 }, status];
  }
  const thousandths = Math.round((job.progress ?? 0) * 1000);
  if (job.status !== 'running' || thousandths === 0) return [status];
  return [status, { kind: 'progress', id: id + thousandths, jobId: job.id, progress: thousandths / 1000 }];
}

const MAX_ENTRIES = 1000;
/** Other callers stop relying on a read that takes longer than this. */
const READ_TIMEOUT_MS = 5000;

interface Entry<T> {
  readonly value: T;
  readonly readAt: number;
  /** When the current read began. */
  readingSince?: number;
}

/**
 * Shares reads between the callers of one isolate: each value is read about once per `maxAgeMs`. Promises are not
 * shared, because the platform ties them to the request that made them.
 */
export class SharedReads<T> {
  readonly #entries = new Map<string, Entry<T>>();

  constructor(
    readonly maxAgeMs: number,
    readonly now: () => number,
  ) {}

  /** A value that is at most `maxAgeMs` old, or the previous one while another caller is reading. */
  async get(key: string, read: () => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key);
    const now = this.now();
    if (entry) {
      const isFresh = now - entry.readAt < this.maxAgeMs;
      const isBeingRead = entry.readingSince !== undefined && now - entry.readingSince < READ_TIMEOUT_MS;
      if (isFresh || isBeingRead) return entry.value;
      entry.readingSince = now;
    }
    const value = await read();
    this.#entries.delete(key);
    this.#entries.set(key, { value, readAt: this.now() });
    // Maps keep insertion order: the first entry was read longest ago.
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
    return value;
  }
}
