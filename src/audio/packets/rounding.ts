import type { EvenTimes } from './packet.ts';

/** What times that are rounded each for itself may be off by, one after another; equal ones that come to more were not. */
const MOST_TICKS = 2;

/**
 * How many samples too few a packet's duration in the container tells, where that is but the rounding to a coarse clock: a writer that gives every frame
 * of 23.2 ms the length of 23. Below 0 where it tells too many; 0 where there is another reason, or none.
 *
 * Durations that follow real times change between the two whole numbers around the true one, so that nothing adds up.
 *
 * @param samples what the packet decodes to
 */
export function roundedOff({ ticks, timescale, packets }: EvenTimes, samples: number, rateHz: number): number {
  // In parts of a tick, of which it has `rateHz`: whole numbers, so that what is exact comes out as 0.
  const off = samples * timescale - ticks * rateHz;
  const isRounding = Math.abs(off) < rateHz && Math.abs(off) * packets > MOST_TICKS * rateHz;
  return isRounding ? off / timescale : 0;
}
