import type { D1Database } from '@cloudflare/workers-types';
import { LEASE_MS, QUEUE_LEASE_MS } from '../../src/jobs/dispatch.ts';

/** A message that its queue should have handed out by now. */
export interface WaitingMessage {
  readonly queue: string;
  /** Id of its outbox row. */
  readonly id: string;
  /** Changes whenever the message is begun, put back or sent again. */
  readonly state: string;
}

/** More than one, because this version of the service may not be able to read the first. */
const MESSAGES_PER_QUEUE = 20;
/**
 * A step that runs, or waits for its turn in the isolate, renews its lease to LEASE_MS from now. Longer leases belong
 * to messages that wait in a queue.
 */
const LONGEST_WORK_LEASE_MS = LEASE_MS + 1000;

/**
 * The oldest messages that wait in each queue of which no step runs. Every send, retry and put-back sets the lease to
 * QUEUE_LEASE_MS after the moment at which the queue should hand the message out, so that this moment can be read from
 * the row. A webhook's lease is as long while it is delivered as in its queue, so only webhooks that were never begun
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
 * Prepares the query for messages that wait too long if they do not change. Preparing blocks this process and a call
 * does not, so the call is safe with a runtime that may hang.
 *
 * @returns the oldest messages of each queue, oldest first; none after an error of the database, which is an answer,
 *   too
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
