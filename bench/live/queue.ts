import { percentile } from '../load.ts';
import type { EventDelay } from './delay.ts';

const FRAME_MS = 100;
/** No machine carries more: ends the search where pushes cost nothing. */
const MOST_STREAMS = 1000;

/** Measured pushes of one stream, and the events they told. */
export interface Load {
  readonly pushMs: readonly number[];
  readonly delays: readonly EventDelay[];
}

export interface Capacity {
  readonly streams: number;
  readonly p95AloneMs: number;
  readonly p95Ms: number;
  /** The first number of streams that is too many. */
  readonly p95BeyondMs: number;
}

/**
 * Delays of all events when so many streams share one core: each is the measured stream, begun elsewhere in it; frames come every
 * 100 ms, evenly spread over the streams, and are worked on one after the other in the order of their arrival.
 */
export function delaysOf({ pushMs, delays }: Load, streams: number): number[] {
  const { length } = pushMs;
  const byPush = new Map<number, number[]>();
  for (const { push, audioMs } of delays) byPush.set(push, [...(byPush.get(push) ?? []), audioMs]);
  const result: number[] = [];
  let freeAt = 0;
  for (let frame = 0; frame < length; frame++) {
    for (let stream = 0; stream < streams; stream++) {
      const push = (frame + Math.floor((stream * length) / streams)) % length;
      const arrivesAt = (frame + stream / streams) * FRAME_MS;
      freeAt = Math.max(freeAt, arrivesAt) + pushMs[push];
      for (const audioMs of byPush.get(push) ?? []) result.push(audioMs + freeAt - arrivesAt);
    }
  }
  return result;
}

/** How many streams one core carries before the 95th percentile of the delays is twice that of one stream alone. */
export function capacityOf(load: Load): Capacity {
  const p95 = (streams: number): number => percentile(delaysOf(load, streams), 0.95);
  const p95AloneMs = p95(1);
  let p95Ms = p95AloneMs;
  for (let streams = 1; streams < MOST_STREAMS; streams++) {
    const p95BeyondMs = p95(streams + 1);
    if (p95BeyondMs > 2 * p95AloneMs) return { streams, p95AloneMs, p95Ms, p95BeyondMs };
    p95Ms = p95BeyondMs;
  }
  return { streams: MOST_STREAMS, p95AloneMs, p95Ms, p95BeyondMs: p95Ms };
}
