import type { Log } from '../ports.ts';
import type { LiveTimes } from './limits.ts';
import type { LiveObjects, LiveStore } from './ports.ts';

/** Streams that a sweep looks at: a call of an object each. */
const BATCH_STREAMS = 100;
/** Longer than an end takes that needs several tries. */
const SLACK_MS = 10 * 60_000;

/**
 * Ends what its object should have ended long ago: an open row keeps one of the account's places, and with a deployment that is broken for some minutes the platform gives
 * up alarms. An object that knows of its stream ends it; a row without one ends as an error. Safe to run at any time, also twice at once.
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
  const before = now - SLACK_MS;
  const overdue = await store.overdue(before - times.tokenMs, before - times.connectedMs, BATCH_STREAMS);
  const looked = await Promise.allSettled(
    overdue.map(async (streamId) => {
      const isKnown = await objects.wake(streamId);
      if (!isKnown) await store.end(streamId, { status: 'error', receivedSeconds: 0 }, now);
      log('warn', 'live_overdue', { streamId, isKnown });
    }),
  );
  const fault = looked.find((result) => result.status === 'rejected');
  if (fault) throw fault.reason;
}
