import type { BlockReader } from '../block-reader.ts';
import { MONO_BLOCK_SAMPLES } from '../container.ts';
import { type SeekPoint, seekPoints } from '../seek-table.ts';
import type { DecoderPort } from '../types.ts';
import { packetCounter } from './count.ts';
import { Lane } from './lane.ts';
import { MAX_PACKET_BYTES, type PacketIndex, type PacketWalk, packetBytes } from './packet.ts';
import { preRollSamples } from './pieces.ts';

/** Finds the packets from an index point on. */
export type WalkFrom = (entry: number) => PacketWalk;

/**
 * Decoded samples of a track from a position on, to the last packet; silence where packets are missing.
 *
 * Decoders remember more than the last packet (noise generators, predictors), so a decoder that starts in the middle would not give the same
 * bits. Hence the index fixes where a decoder is opened anew, and every reader does so at the same places: two run side by
 * side for the pre-roll, then the new one takes over.
 */
export async function* readPositions(
  reader: BlockReader,
  index: PacketIndex,
  decoders: DecoderPort,
  walkFrom: WalkFrom,
  fromPosition: number,
): AsyncGenerator<Float32Array> {
  const rateHz = index.sampleRateHz;
  const preRoll = preRollSamples(rateHz);
  const points = seekPoints(index.seek);
  /** Position of the next sample to yield. */
  let cursor = fromPosition;
  let at = points.findLastIndex((point) => point.sample + preRoll <= cursor);
  if (at < 0) at = 0;
  const first = points[at];
  if (!first) return;
  const counter = packetCounter(index.track, index.packetSamples, at === 0);
  const gaps = new Gaps(index.gaps, first.sample);
  const out = new Float32Array(MONO_BLOCK_SAMPLES);
  const openLane = () => new Lane(index.track, decoders, rateHz);
  let lane = openLane();
  let fresh: Lane | undefined;
  let handOver = Number.POSITIVE_INFINITY;
  let position = first.sample;
  let upcoming: SeekPoint | undefined = points[++at];

  function takeOver(next: Lane): void {
    lane.close();
    lane = next;
    fresh = undefined;
    handOver = Number.POSITIVE_INFINITY;
  }

  /** What of a lane's last block lies in `[cursor, until)`, silence in front of it. */
  function* take(from: Lane, until: number): Generator<Float32Array> {
    const { block, blockPosition } = from;
    const stop = Math.min(until, blockPosition + block.length);
    while (cursor < stop) {
      const isSilence = cursor < blockPosition;
      const length = Math.min((isSilence ? Math.min(blockPosition, stop) : stop) - cursor, MONO_BLOCK_SAMPLES);
      if (isSilence) out.fill(0, 0, length);
      else out.set(block.subarray(cursor - blockPosition, cursor - blockPosition + length));
      cursor += length;
      yield out.subarray(0, length);
    }
  }

  try {
    for await (const run of walkFrom(first.offset)) {
      for (const packet of run.packets) {
        const bytes = await packetBytes(reader, packet, MAX_PACKET_BYTES);
        position = gaps.pass(position);
        while (upcoming && upcoming.sample < position) upcoming = points[++at];
        if (fresh && position >= handOver) takeOver(fresh);
        if (upcoming && upcoming.sample === position) {
          fresh?.close();
          fresh = openLane();
          handOver = position + preRoll;
          upcoming = points[++at];
        }
        const samples = counter.count(bytes, packet.length);
        lane.decode(bytes, position, samples);
        fresh?.decode(bytes, position, samples);
        yield* take(lane, handOver);
        if (fresh) {
          if (position + samples > handOver) {
            yield* take(fresh, Number.POSITIVE_INFINITY);
            takeOver(fresh);
          }
        }
        position += samples;
      }
    }
  } finally {
    lane.close();
    fresh?.close();
  }
}

/** The jumps of the clock from a position on. */
class Gaps {
  #at = 0;
  constructor(
    private readonly gaps: readonly number[],
    from: number,
  ) {
    while (this.#at < gaps.length && gaps[this.#at] < from) this.#at += 2;
  }

  /** Position of the packet that is next after the counted samples end at `position`. */
  pass(position: number): number {
    if (this.#at >= this.gaps.length || this.gaps[this.#at] !== position) return position;
    const jump = this.gaps[this.#at + 1];
    this.#at += 2;
    return position + jump;
  }
}
