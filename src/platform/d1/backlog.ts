/** Steps of one queue that are not done yet. Shards are not among them: the object of their job holds them. */
export interface Backlog {
  readonly queue: string;
  /** Without analyses whose shards were handed out. */
  readonly messages: number;
  /** Since the oldest of them was due; below 0 where all are for later, 0 where there is none. */
  readonly oldestSeconds: number;
  /** Since the first lease ran out without a new sending; below 0 where none has. */
  readonly overdueSeconds: number;
}

/** What waits, by queue. @param now milliseconds since the Unix epoch */
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
