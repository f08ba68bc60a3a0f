import type { BlockReader } from '../block-reader.ts';
import { MAX_SCAN_SECONDS } from '../container.ts';
import { type SeekTable, SeekTableBuilder } from '../seek-table.ts';
import type { PacketCounter } from './count.ts';
import { type PacketRun, type PacketWalk, packetBytes } from './packet.ts';

/** Distance of the places where a decoder is opened anew. */
const SEEK_SECONDS = 30;

/** Times of packets that differ from the count of samples by less are rounding and jitter: the count goes on. */
const TOLERANCE_SECONDS = 0.05;
/** A jump forward up to this is a pause and kept as silence; a longer one is another clock. */
export const MAX_GAP_SECONDS = 600;
/** A jump back up to this is an overlap, whose end is heard; a longer one is another clock. */
const MAX_OVERLAP_SECONDS = 1;
/** Overlaps of more than this part of the recording are a broken clock. */
const MAX_OVERLAP_PART = 0.01;
/** Packets walked: 16.7 hours of the shortest that are in use (Opus, 2.5 ms), and more than 24 of any other. */
const MAX_PACKETS = 24_000_000;
/** Jumps kept; in a file with more of them the rest of the times is not believed. */
const MAX_GAPS = 1024;

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
  let packets = 0;
  let emptyPackets = 0;
  let runs = 0;
  let firstSeconds: number | undefined;
  let startPadding = 0;
  let endPadding = 0;
  let hasTooMany = false;
  for await (const run of walk) {
    hasTooMany = packets >= maxPackets && run.packets.length > 0;
    if (hasTooMany) break;
    runs++;
    const counts = await countRun(reader, run, counter);
    if (run.endSample !== undefined) {
      const samples = counts.reduce((sum, [count]) => sum + count, 0);
      if (packets === 0) startPadding = samples - run.endSample;
      const stamp = run.endSample - samples;
      // Less than was counted is padding if this is the end; in the middle there is nothing to be made of it.
      if (packets === 0 || stamp + clock.shift > clock.position) clock.expect(stamp);
      const tooMuch = clock.position - clock.shift - stamp;
      endPadding = tooMuch <= samples ? tooMuch : 0;
    }
    for (let i = 0; i < run.packets.length; i++) {
      const { seconds, entry } = run.packets[i];
      const [count, canRestart] = counts[i];
      if (seconds !== undefined) {
        if (packets === 0) firstSeconds = seconds;
        clock.expect(seconds * rateHz);
      }
      if (entry !== undefined && canRestart && clock.isAhead) seek.add(entry, clock.position);
      clock.position += count;
      if (count === 0) emptyPackets++;
      packets++;
    }
    if (run.endSeconds !== undefined) endPadding = Math.round(clock.position - clock.shift - run.endSeconds * rateHz);
    else if (run.endSample === undefined) endPadding = Math.round((run.paddingSeconds ?? 0) * rateHz);
    if (clock.position > MAX_SCAN_SECONDS * rateHz) break;
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
    brokenTimes: clock.brokenTimes,
    hasTooMany,
  };
}

async function countRun(
  reader: BlockReader,
  run: PacketRun,
  counter: PacketCounter,
): Promise<readonly (readonly [samples: number, canRestart: boolean])[]> {
  const counts: [number, boolean][] = [];
  for (const packet of run.packets) {
    const { canRestart, headBytes } = counter;
    const head = headBytes > 0 ? await packetBytes(reader, packet, headBytes) : new Uint8Array(0);
    counts.push([counter.count(head, packet.length), canRestart]);
  }
  return counts;
}

/** Counts samples, and jumps where the container's times do. */
class Clock {
  position = 0;
  readonly gaps: number[] = [];
  gapSamples = 0;
  brokenTimes = 0;
  /** Position minus what the container says. */
  shift = 0;
  #isStarted = false;
  #lastJumpBack = -1;
  #overlap = 0;

  constructor(private readonly rateHz: number) {}

  /** Whether no position from here on has been passed before a jump back. */
  get isAhead(): boolean {
    return this.position > this.#lastJumpBack;
  }

  /** The container says that the next packet begins at `stamp`, samples of its own clock. */
  expect(stamp: number): void {
    if (!this.#isStarted) {
      this.shift = this.position - stamp;
      this.#isStarted = true;
      return;
    }
    const jump = Math.round(stamp + this.shift - this.position);
    if (Math.abs(jump) <= TOLERANCE_SECONDS * this.rateHz) return;
    const isBelieved =
      this.gaps.length < 2 * MAX_GAPS && jump <= MAX_GAP_SECONDS * this.rateHz && (jump > 0 || this.#isOverlap(-jump));
    if (!isBelieved) {
      this.shift -= jump;
      this.brokenTimes++;
      return;
    }
    this.gaps.push(this.position, jump);
    if (jump > 0) this.gapSamples += jump;
    else {
      this.#lastJumpBack = this.position;
      this.#overlap -= jump;
    }
    this.position += jump;
  }

  #isOverlap(samples: number): boolean {
    const longest = MAX_OVERLAP_SECONDS * this.rateHz;
    const inAll = this.#overlap + samples;
    return samples <= longest && samples <= this.position && inAll <= longest + MAX_OVERLAP_PART * this.position;
  }
}
