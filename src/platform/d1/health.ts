/** Unfinished steps of one queue. Without shards, which the object of their job holds. */
export interface Backlog {
  readonly queue: string;
  /** Without analyses whose shards were dispatched. */
  readonly messages: number;
  /** Since the oldest message was due; below 0 if all are due later, 0 if there is none. */
  readonly oldestSeconds: number;
  /** Since the first expired lease whose message was not sent again; below 0 if no lease has expired. */
  readonly overdueSeconds: number;
}

/** Waiting messages by queue. @param now milliseconds since the Unix epoch */
export async function readBacklog(db: D1Database, now: number): Promise<Backlog[]> {
  const { results } = await db
    .prepare(
      // Rows that were handed over are due at 0 (`handOver`).
      `SELECT queue, SUM(due_at > 0) AS messages, COALESCE((?1 - MIN(NULLIF(due_at, 0))) / 1000, 0) AS oldestSeconds,
              (?1 - MIN(lease_until)) / 1000 AS overdueSeconds
       FROM outbox GROUP BY queue ORDER BY queue`,
    )
    .bind(now)
    .all<Backlog>();
  return results;
}

/** Results are reused for this time, so that requests without a key do not cost a read each. */
const CACHE_MS = 5000;
/** Longer than a slow read takes. */
const TIMEOUT_MS = 3000;

let last: { readonly at: number; readonly canTake: boolean } | undefined;

/**
 * Whether a job could be stored now: the database isAvailable and has the service's tables. Queues do not matter: the
 * outbox keeps messages that cannot be sent.
 *
 * @param now milliseconds since the Unix epoch
 */
export async function canTakeJobs(db: D1Database, now: number): Promise<boolean> {
  if (!last || now - last.at >= CACHE_MS || now < last.at) last = { at: now, canTake: await isAvailable(db) };
  return last.canTake;
}

async function isAvailable(db: D1Database): Promise<boolean> {
  const late = new Promise<false>((done) => setTimeout(() => done(false), TIMEOUT_MS));
  const read = db.prepare('SELECT 1 FROM jobs LIMIT 1').all();
  return Promise.race([read.then(() => true).catch(() => false), late]);
}
