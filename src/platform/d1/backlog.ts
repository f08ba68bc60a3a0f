/** Messages of one queue that are not handled yet. */
export interface Backlog {
  readonly queue: string;
  readonly messages: number;
  /** Since the oldest of them was due; below 0 where all are for later. */
  readonly oldestSeconds: number;
  /** Since the first lease ran out without a new sending; below 0 where none has. */
  readonly overdueSeconds: number;
}

/** What waits, by queue. @param now milliseconds since the Unix epoch */
export async function readBacklog(db: D1Database, now: number): Promise<Backlog[]> {
  const { results } = await db
    .prepare(
      `SELECT queue, COUNT(*) AS messages, (?1 - MIN(due_at)) / 1000 AS oldestSeconds,
              (?1 - MIN(lease_until)) / 1000 AS overdueSeconds
       FROM outbox GROUP BY queue ORDER BY queue`,
    )
    .bind(now)
    .all<Backlog>();
  return results;
}
