import { release } from '../audio/memory.ts';
import type { EmbeddingPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { Engine } from './ports.ts';

/** Milliseconds spent per stage of a shard. */
export interface StageTimes {
  decodeMs: number;
  segmentationMs: number;
  embeddingMs: number;
  totalMs: number;
}

/** Four seconds at 16 kHz: some ten milliseconds of decoding. */
const GATHERED_SAMPLES = 64_000;

/** As long as a block is at most; a longer one would have the array made anew. */
const LONGEST_BLOCK_SAMPLES = 16_000;

/**
 * Wraps model runs and sample reading so that each counts its own time. The platform's clock moves only on I/O, so every
 * measured step ends with a pause; that pause is also what lets a busy isolate answer others between windows.
 */
export class StageClock {
  readonly times: StageTimes = { decodeMs: 0, segmentationMs: 0, embeddingMs: 0, totalMs: 0 };
  #startedAt: number;

  constructor(
    private readonly now: () => number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#startedAt = now();
  }

  /**
   * The same samples, four seconds or more at a time: decoders give some milliseconds at once, and a pause for each of them costs more than the
   * decoding, and leaves a heap full of promises.
   *
   * @returns blocks that are valid until the next one is asked for
   */
  async *samples(blocks: AsyncIterable<Float32Array>): AsyncGenerator<Float32Array> {
    const iterator = blocks[Symbol.asyncIterator]();
    let gathered = new Float32Array(GATHERED_SAMPLES + LONGEST_BLOCK_SAMPLES);
    let isDone = false;
    const gather = async (): Promise<number> => {
      let filled = 0;
      while (filled < GATHERED_SAMPLES) {
        const next = await iterator.next();
        if (next.done) {
          isDone = true;
          break;
        }
        if (filled + next.value.length > gathered.length) gathered = grown(gathered, filled + next.value.length);
        gathered.set(next.value, filled);
        filled += next.value.length;
      }
      return filled;
    };
    try {
      while (!isDone) {
        const filled = await this.#timed('decodeMs', gather);
        if (filled > 0) yield gathered.subarray(0, filled);
      }
    } finally {
      // Who reads stops before the end; decoder and resampler have memory of their own to give back.
      await iterator.return?.();
      release(gathered);
    }
  }

  segmentation(port: SegmentationPort): SegmentationPort {
    if (port.form === 'whole') {
      return { ...port, run: (window: Float32Array) => this.#timed('segmentationMs', () => port.run(window)) };
    }
    return {
      ...port,
      run: (powers: Float32Array, frames: number) => this.#timed('segmentationMs', () => port.run(powers, frames)),
    };
  }

  embedding(port: EmbeddingPort): EmbeddingPort {
    if (port.form === 'whole') {
      return { ...port, embed: (feats, frames) => this.#timed('embeddingMs', () => port.embed(feats, frames)) };
    }
    return {
      ...port,
      trunk: (feats, frames) => this.#timed('embeddingMs', () => port.trunk(feats, frames)),
      head: (pooled, batch) => this.#timed('embeddingMs', () => port.head(pooled, batch)),
    };
  }

  engine(engine: Engine): Engine {
    return {
      ...engine,
      segmentation: this.segmentation(engine.segmentation),
      embedding: this.embedding(engine.embedding),
    };
  }

  /** Rounded for the log. What no stage claims is filterbank, mel powers and pooling. */
  finish(): StageTimes {
    this.times.totalMs = this.now() - this.#startedAt;
    const rounded = { ...this.times };
    for (const stage of Object.keys(rounded) as (keyof StageTimes)[]) rounded[stage] = Math.round(rounded[stage]);
    return rounded;
  }

  async #timed<T>(stage: keyof StageTimes, work: () => Promise<T>): Promise<T> {
    const from = this.now();
    try {
      return await work();
    } finally {
      await this.pause();
      this.times[stage] += this.now() - from;
    }
  }
}

function grown(samples: Float32Array, least: number): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(Math.max(least, 2 * samples.length));
  larger.set(samples);
  return larger;
}
