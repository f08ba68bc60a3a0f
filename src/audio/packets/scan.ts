import type { BlockReader } from '../block-reader.ts';
import { MAX_SCAN_SECONDS } from '../container.ts';
import { type SeekTable, SeekTableBuilder } from '../seek-table.ts';
import { Clock } from './clock.ts';
import type { PacketCounter } from './count.ts';
import { CountedRuns } from './counted-runs.ts';
import type { PacketWalk } from './packet.ts';
import { roundedOff } from './rounding.ts';
import { SteadyTimes } from './steady-times.ts';

/** Distance of the places where a decoder is opened anew. */
const SEEK_SECONDS = 30;

/** Packets walked: 16.7 hours of the shortest that are in use (Opus, 2.5 ms), and more than 24 of any other. */
const MAX_PACKETS = 24_000_000;
export interface Scan {
  /** Position behind the last packet. */
  readonly endPosition: number;
  readonly packets: number;
  /** Of these, the ones without a sample. */
  readonly emptyPackets: number;
  readonly runs: number;
  /** Time of the first packet by the container. */
  readonly firstSeconds: number | undefined;
  /** Counted samples minus what the container says at the end of the last run: padding, or nothing where not above 0. */
  readonly endPadding: number;
  /** Samples of the first run that come before the container's 0: the encoder's delay. */
  readonly startPadding: number;
  readonly seek: SeekTable;
  readonly gaps: readonly number[];
  readonly gapSamples: number;
  /** What was left out where packets overlap in their times. */
  readonly overlapSamples: number;
  /** How many samples too few the times tell in all, by nothing but rounding. */
  readonly roundedSamples: number;
  /** Jumps of the times that were not followed. */
  readonly brokenTimes: number;
  /** Whether there are more packets than are walked. */
  readonly hasTooMany: boolean;
}

/** Walks all packets of a track once, without decoding: counts samples and notes where the container's times jump. */
export async function scanPackets(
  reader: BlockReader,
  walk: PacketWalk,
  counter: PacketCounter,
  rateHz: number,
  maxPackets = MAX_PACKETS,
): Promise<Scan> {
  const clock = new Clock(rateHz);
  const seek = new SeekTableBuilder(SEEK_SECONDS * rateHz);
  const counted = new CountedRuns(reader, walk, counter);
  const times = new SteadyTimes(clock, counted, rateHz);
  let packets = 0;
  let emptyPackets = 0;
  let runs = 0;
  let roundedSamples = 0;
  let firstSeconds: number | undefined;
  let startPadding = 0;
  let endPadding = 0;
  let hasTooMany = false;
  try {
    for (let next = await counted.next(); next; next = await counted.next()) {
      const { run, counts } = next;
      hasTooMany = packets >= maxPackets && run.packets.length > 0;
      if (hasTooMany) break;
      runs++;
      if (run.endSample !== undefined) {
        const samples = counts.reduce((sum, [count]) => sum + count, 0);
        if (packets === 0) startPadding = samples - run.endSample;
        const stamp = run.endSample - samples;
        // Less than was counted is padding if this is the end; in the middle there is nothing to be made of it.
        if (packets === 0 || stamp + clock.shift > clock.position) clock.jump(clock.jumpTo(stamp));
        const tooMuch = clock.position - clock.shift - stamp;
        endPadding = tooMuch <= samples ? tooMuch : 0;
      }
      for (let i = 0; i < run.packets.length; i++) {
        const { seconds, evenly, entry } = run.packets[i];
        const [count, canRestart] = counts[i];
        if (seconds !== undefined) {
          if (packets === 0) firstSeconds = seconds;
          const jump = clock.jumpTo(seconds * rateHz);
          if (jump !== 0) clock.jump(await times.lasting(jump, packets, next, i));
        }
        if (entry !== undefined && canRestart && clock.isAhead) seek.add(entry, clock.position);
        clock.position += count;
        if (evenly) {
          const off = roundedOff(evenly, count, rateHz);
          clock.slip(off);
          roundedSamples += off;
        }
        if (count === 0) emptyPackets++;
        packets++;
      }
      if (run.endSeconds !== undefined) endPadding = Math.round(clock.position - clock.shift - run.endSeconds * rateHz);
      else if (run.endSample === undefined) endPadding = Math.round((run.paddingSeconds ?? 0) * rateHz);
      if (clock.position > MAX_SCAN_SECONDS * rateHz) break;
    }
  } finally {
    await counted.close();
  }
  return {
    endPosition: clock.position,
    packets,
    emptyPackets,
    runs,
    firstSeconds,
    startPadding,
    endPadding,
    seek: seek.build(),
    gaps: clock.gaps,
    gapSamples: clock.gapSamples,
    overlapSamples: clock.overlapSamples,
    roundedSamples,
    brokenTimes: clock.brokenTimes,
    hasTooMany,
  };
}
