import type { JobView, JobWatchItem } from './app-services.ts';
import { isTerminal } from './state.ts';

/** While something happens a watcher looks every second, otherwise less and less often. */
export const MIN_POLL_MS = 1000;
export const MAX_POLL_MS = 5000;
/** Proxies cut connections on which nothing is sent for a minute. */
export const HEARTBEAT_MS = 15_000;
/** Then the client connects again with the id of the last event it got. */
export const MAX_WATCH_MS = 15 * 60_000;

/** Ids rise with the job's way: the state's thousands of thousands, then the thousandths of the progress. */
const STATE_STEP = 10_000;
const STATE_RANK = { created: 0, pending: 1, running: 2, succeeded: 3, failed: 3, canceled: 3 } as const;
/** Id of the event that tells how the job ended; nothing comes behind it. */
export const FINAL_EVENT_ID = STATE_RANK.succeeded * STATE_STEP;

export interface WatchDependencies {
  /** The job as it is now; undefined when it is gone. */
  readonly read: () => Promise<JobView | undefined>;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * Tells what becomes of a job, each event once: its states and, while it runs, its progress. Ends with the job, when it is
 * deleted, when nobody listens any more or may, and after a quarter of an hour.
 *
 * An event's id follows from the state and progress it tells, so a watcher can go on anywhere, in any isolate.
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

/** What there is to tell of a job in this state, in the order of the ids. */
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
