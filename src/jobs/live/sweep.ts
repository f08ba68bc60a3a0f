import type { Log } from '../ports.ts';
import type { LiveTimes } from './limits.ts';
import type { LiveObjects, LiveStore } from './ports.ts';

/** Streams that a sweep looks at: a call of an object each, and a statement for those that are ended here. */
const BATCH_STREAMS = 200;
/** Longer than an end takes that needs several tries. */
const SLACK_MS = 10 * 60_000;
/**
 * How long a stream runs before a sweep sees to it. Whether its client is still there only its object knows: where that has lost its alarm, the row
 * would keep one of the account's places to the end of its day.
 */
const LOOK_AFTER_MS = 30 * 60_000;

/**
 * Ends what its object should have ended: an open row keeps one of the account's places, and with a deployment that is broken for some minutes the platform gives
 * up alarms. An object that knows of its stream looks after it once more, and ends it where it is over; a row without one ends as an error. Safe to run at any time, also twice at once.
 *
 * @throws the first fault, when all others have been looked at
 */
export async function sweepStreams(ports: {
  readonly store: LiveStore;
  readonly objects: LiveObjects;
  readonly times: LiveTimes;
  readonly now: () => number;
  readonly log: Log;
}): Promise<void> {
  const { store, objects, times, log } = ports;
  const now = ports.now();
  const startedBefore = now - Math.min(LOOK_AFTER_MS, SLACK_MS + times.connectedMs);
  const open = await store.openSince(now - SLACK_MS - times.tokenMs, startedBefore, BATCH_STREAMS);
  const looked = await Promise.allSettled(
    open.map(async (streamId) => {
      if (await objects.wake(streamId)) return;
      const ended = await store.end(streamId, { status: 'error', receivedSeconds: 0 }, now);
      if (ended) log('warn', 'live_without_object', { streamId });
    }),
  );
  const fault = looked.find((result) => result.status === 'rejected');
  if (fault) throw fault.reason;
}
