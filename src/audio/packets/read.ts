import type { BlockReader } from '../block-reader.ts';
import { MONO_BLOCK_SAMPLES } from '../container.ts';
import type { DecoderPort } from '../types.ts';
import type { PacketIndex } from './packet.ts';
import { isOnTheWay } from './pieces.ts';
import { readPositions, type WalkFrom } from './positions.ts';

/**
 * Mono samples of a recording in packets, from `startSample` to its end: its pieces, one after another. A decoded sample is the same wherever
 * reading began (`positions.ts`), so it does not matter which pieces were read before.
 */
export async function* readPackets(
  reader: BlockReader,
  index: PacketIndex,
  decoders: DecoderPort,
  startSample: number,
  walkFrom: WalkFrom,
): AsyncGenerator<Float32Array> {
  const head = new Playhead(index, (position) => readPositions(reader, index, decoders, walkFrom, position));
  const silence = new Float32Array(MONO_BLOCK_SAMPLES);
  let skip = startSample;
  try {
    for (const { position, samples } of index.pieces) {
      if (skip >= samples) {
        skip -= samples;
        continue;
      }
      let left = samples - skip;
      const end = position === undefined ? undefined : position + samples;
      while (end !== undefined && left > 0) {
        const block = await head.read(end - left, left);
        if (!block) break;
        left -= block.length;
        yield block;
      }
      // Also where a file lost its end after it was probed: the clock is kept.
      for (; left > 0; left -= Math.min(left, silence.length)) {
        yield silence.fill(0).subarray(0, Math.min(left, silence.length));
      }
      skip = 0;
    }
  } finally {
    await head.close();
  }
}

/** Reads positions, and reads on where that is less work than beginning anew. */
class Playhead {
  #blocks: AsyncGenerator<Float32Array> | undefined;
  /** What of the last block is still to come; its first sample is at `#position`. */
  #rest: Float32Array = new Float32Array(0);
  #position = 0;

  constructor(
    private readonly index: PacketIndex,
    private readonly open: (position: number) => AsyncGenerator<Float32Array>,
  ) {}

  /** One to `samples` samples from `position` on; undefined behind the end of the track. The view is valid until the next call. */
  async read(position: number, samples: number): Promise<Float32Array | undefined> {
    const { seek, sampleRateHz } = this.index;
    if (!this.#blocks || (position !== this.#position && !isOnTheWay(seek, sampleRateHz, this.#position, position))) {
      await this.close();
      this.#blocks = this.open(position);
      this.#position = position;
    }
    for (;;) {
      const skipped = Math.min(this.#rest.length, position - this.#position);
      this.#take(skipped);
      if (this.#rest.length > 0) return this.#take(Math.min(this.#rest.length, samples));
      const next = await this.#blocks.next();
      if (next.done) return undefined;
      this.#rest = next.value;
    }
  }

  #take(samples: number): Float32Array {
    const block = this.#rest.subarray(0, samples);
    this.#rest = this.#rest.subarray(samples);
    this.#position += samples;
    return block;
  }

  async close(): Promise<void> {
    await this.#blocks?.return(undefined);
    this.#blocks = undefined;
    this.#rest = new Float32Array(0);
  }
}
