import type { D1Database } from '@cloudflare/workers-types';
import { LEASE_MS, QUEUE_LEASE_MS } from '../../src/jobs/dispatch.ts';

/** A message that its queue should have delivered by now. */
export interface WaitingMessage {
  readonly queue: string;
  /** Id of its outbox row. */
  readonly id: string;
  /** Changes when the message is started, postponed or sent again. */
  readonly state: string;
}

/** More than one, because this version of the service may be unable to read the first. */
const MESSAGES_PER_QUEUE = 20;
/**
 * A step that runs or waits for the mutex of the isolate renews its lease to LEASE_MS from now. Longer leases belong to
 * messages that wait in a queue.
 */
const LONGEST_WORK_LEASE_MS = LEASE_MS + 1000;

/**
 * Selects the oldest waiting messages of each queue that has no running step. Every send, retry and postponement sets
 * the lease to QUEUE_LEASE_MS after the time at which the queue should deliver the message, so the row implies that
 * time. A webhook has the same lease in its queue and during its delivery, so only webhooks that were never started
 * count as waiting. The row of an analysis represents its shards: the job's object renews its lease while they run.
 */
const QUERY = `
WITH clock AS (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now),
busy AS (
  SELECT queue FROM outbox, clock
  WHERE lease_until > now AND (queue = 'webhooks' AND starts > 0 OR lease_until <= now + ${LONGEST_WORK_LEASE_MS})
  GROUP BY queue
),
waiting AS (
  SELECT rowid AS position, queue, id, starts, lease_until,
    MAX(due_at, lease_until - ${QUEUE_LEASE_MS}) AS expected_at
  FROM outbox, clock
  WHERE starts = 0 OR (queue <> 'webhooks' AND lease_until > now + ${LONGEST_WORK_LEASE_MS})
),
ranked AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY queue ORDER BY expected_at, position) AS place FROM waiting, clock
  WHERE expected_at <= now AND queue NOT IN (SELECT queue FROM busy)
)
SELECT queue, id, starts || ' ' || lease_until AS state
FROM ranked WHERE place <= ${MESSAGES_PER_QUEUE} ORDER BY queue, place`;

/**
 * Prepares the query for the waiting messages. Preparing blocks this process; a call does not, so it is safe with a
 * runtime that may hang.
 *
 * @returns the oldest messages of each queue, oldest first; none after a database error, since the runtime has answered
 */
export function waitingMessagesOf(db: D1Database): () => Promise<WaitingMessage[]> {
  const statement = db.prepare(QUERY);
  return async () => {
    try {
      return (await statement.all<WaitingMessage>()).results;
    } catch (error) {
      if (String(error).includes('D1_ERROR')) return [];
      throw error;
    }
  };
}
