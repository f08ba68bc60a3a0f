import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';
import { BANDS, normalisedTail, subtractMean } from '../diarization/embedder.ts';
import { normalise } from '../diarization/numerics.ts';
import { LIVE, type LiveTiming } from './live-parameters.ts';
import type { LiveEngine } from './live-session.ts';

/** The last rows of a growing table. Rows are numbered from the start of the stream; old ones are dropped. */
export class Ring {
  /** [2 · capacity, width], of which `#count` rows from `#offset` on are in use */
  #rows: Float32Array;
  #offset = 0;
  #first = 0;
  #count = 0;

  constructor(
    readonly width: number,
    readonly capacity: number,
  ) {
    this.#rows = new Float32Array(2 * capacity * width);
  }

  /** Number of the first row that is still stored. */
  get start(): number {
    return this.#first;
  }

  /** Number of rows that were added so far. */
  get end(): number {
    return this.#first + this.#count;
  }

  /** Adds rows. @param values [rows, width] */
  push(values: Float32Array): void {
    const rows = values.length / this.width;
    if (rows > this.capacity) {
      const skipped = rows - this.capacity;
      this.#first += this.#count + skipped;
      this.#count = this.capacity;
      this.#offset = 0;
      this.#rows.set(values.subarray(skipped * this.width));
      return;
    }
    const kept = Math.min(this.#count, this.capacity - rows);
    // The buffer has twice the capacity: rows are moved to its front once per `capacity` rows, not in each call.
    if ((this.#offset + this.#count + rows) * this.width > this.#rows.length) {
      const from = (this.#offset + this.#count - kept) * this.width;
      this.#rows.copyWithin(0, from, from + kept * this.width);
      this.#first += this.#count - kept;
      this.#count = kept;
      this.#offset = 0;
    }
    this.#rows.set(values, (this.#offset + this.#count) * this.width);
    this.#count += rows;
    const surplus = this.#count - this.capacity;
    if (surplus > 0) {
      this.#offset += surplus;
      this.#first += surplus;
      this.#count = this.capacity;
    }
  }

  /** Rows [from, to) as a view that is valid until the next `push`. @throws RangeError if some are not stored */
  view(from: number, to: number): Float32Array {
    if (from < this.#first || to > this.end || from > to) {
      throw new RangeError(`rows ${from} to ${to} are not all in ${this.#first} to ${this.end}`);
    }
    const at = this.#offset + from - this.#first;
    return this.#rows.subarray(at * this.width, (at + to - from) * this.width);
  }

  /** State for `restore`. */
  save(): { readonly start: number; readonly rows: Float32Array } {
    return { start: this.#first, rows: this.view(this.#first, this.end).slice() };
  }

  restore({ start, rows }: { readonly start: number; readonly rows: Float32Array }): void {
    this.#offset = 0;
    this.#first = start;
    this.#count = rows.length / this.width;
    this.#rows.set(rows);
  }
}

/** Filterbank frames at 16 kHz: every 10 ms, 25 ms long. */
const FBANK_SHIFT_SAMPLES = 160;
const FBANK_SIZE_SAMPLES = 400;
/** Trunk frames whose statistics form a block: a tenth of a second with 50 trunk frames a second. */
const FRAMES_PER_BLOCK = 5;
const VARIANCE_FLOOR = 1e-5;

/** Content of a `StreamBuffer`, as stored in a snapshot: `frames` is `#rest`, `trunk` is `#trunkState`. */
export interface StreamBufferState {
  readonly samples: { readonly start: number; readonly rows: Float32Array };
  readonly feats: { readonly start: number; readonly rows: Float32Array };
  readonly blocks: { readonly start: number; readonly rows: Float32Array } | undefined;
  readonly frames: Float32Array;
  readonly trunk: Uint8Array | undefined;
  readonly trunkEnd: number;
  readonly channels: number;
}

/**
 * The last seconds of a stream as samples, filterbank features, and sums of the embedding trunk's frames in blocks,
 * each computed once. Mean and deviation of any set of blocks follow from their sums. Features are normalised
 * over up to ten seconds of past.
 */
export class StreamBuffer {
  readonly #samples: Ring;
  readonly #feats = new Ring(BANDS, LIVE.normalisationFrames + 200);
  /** One row per block: sums of the values and of their squares, [2, channels]. */
  #blocks: Ring | undefined;
  /** Frames of the trunk after the last block, [less than a block, channels]. */
  #rest: Float32Array = new Float32Array(0);
  #trunkState: Uint8Array | undefined;
  /** Number of features that the trunk has got. */
  #trunkEnd = 0;

  constructor(
    private readonly engine: Pick<LiveEngine, 'embedding' | 'filterbank'>,
    private readonly timing: Pick<LiveTiming, 'windowSamples' | 'wideSamples' | 'memorySamples'>,
  ) {
    this.#samples = new Ring(1, timing.wideSamples + 2 * FBANK_SIZE_SAMPLES + SAMPLE_RATE_HZ);
  }

  /** Number of samples so far. */
  get end(): number {
    return this.#samples.end;
  }

  /** Length of a block. */
  get blockSamples(): number {
    const { embedding } = this.engine;
    return FRAMES_PER_BLOCK * (embedding.form === 'split' ? embedding.info.frameStride : 2) * FBANK_SHIFT_SAMPLES;
  }

  /** Blocks from which an embedding can be taken: [from, to). */
  get blocks(): { readonly from: number; readonly to: number } {
    if (this.engine.embedding.form === 'split') {
      return { from: this.#blocks?.start ?? 0, to: this.#blocks?.end ?? 0 };
    }
    const perBlock = this.blockSamples / FBANK_SHIFT_SAMPLES;
    return { from: Math.ceil(this.#feats.start / perBlock), to: Math.floor(this.#feats.end / perBlock) };
  }

  /** @param samples at most a second, mono at 16 kHz */
  append(samples: Float32Array): void {
    this.#samples.push(samples);
    const from = this.#feats.end * FBANK_SHIFT_SAMPLES;
    if (this.end - from < FBANK_SIZE_SAMPLES) return;
    this.#feats.push(this.engine.filterbank.compute(this.#samples.view(from, this.end)));
  }

  /** First sample that is still stored. */
  get start(): number {
    return this.#samples.start;
  }

  /** The samples [from, to); zeros before the start of the stream. */
  samples(from: number, to: number): Float32Array {
    const out = new Float32Array(to - from);
    const first = Math.max(0, from);
    out.set(this.#samples.view(first, to), first - from);
    return out;
  }

  /** Runs the trunk over the audio since the last call. */
  async runTrunk(): Promise<void> {
    const { embedding } = this.engine;
    const end = this.#feats.end;
    if (embedding.form !== 'split' || end === this.#trunkEnd) return;
    const feats = this.#normalised(this.#trunkEnd);
    const output = await embedding.continueTrunk(feats, end - this.#trunkEnd, this.#trunkState);
    const { channels } = output;
    this.#trunkState = output.state;
    this.#trunkEnd = end;
    this.#blocks ??= this.#emptyBlocks(channels);
    const frames = concatenated(Float32Array, [this.#rest, output.frames]);
    const blockLength = FRAMES_PER_BLOCK * channels;
    let at = 0;
    for (; at + blockLength <= frames.length; at += blockLength) this.#blocks.push(sumsOf(frames, at, channels));
    this.#rest = frames.slice(at);
  }

  #emptyBlocks(channels: number): Ring {
    const { windowSamples, memorySamples } = this.timing;
    return new Ring(2 * channels, Math.ceil(Math.max(windowSamples, memorySamples) / this.blockSamples) + 1);
  }

  /** Features [from, end), normalised by the floor and the mean of the last ten seconds. */
  #normalised(from: number): Float32Array {
    const start = Math.max(this.#feats.start, Math.min(from, this.#feats.end - LIVE.normalisationFrames));
    const feats = this.#feats.view(start, this.#feats.end);
    return normalisedTail(feats, from - start, this.engine.embedding.info.featureFloorNats);
  }

  /**
   * Embedding of the speech in some blocks.
   * @param blocks indices in the range of `blocks`
   * @returns [dimension] of unit length; undefined for no blocks
   */
  async embed(blocks: readonly number[]): Promise<Float32Array | undefined> {
    if (blocks.length === 0) return undefined;
    const { embedding } = this.engine;
    const vector =
      embedding.form === 'split'
        ? (await embedding.head(this.#pooled(blocks), 1)).slice()
        : (await embedding.embed(...this.#gathered(blocks))).slice();
    normalise(vector, 0, vector.length);
    return vector;
  }

  /** Means, then deviations, [2 · channels]. */
  #pooled(blocks: readonly number[]): Float32Array {
    const channels = this.#blocks!.width / 2;
    const sums = new Float64Array(2 * channels);
    for (const block of blocks) {
      const row = this.#blocks!.view(block, block + 1);
      for (let i = 0; i < sums.length; i++) sums[i] += row[i];
    }
    const pooled = new Float32Array(2 * channels);
    const frames = blocks.length * FRAMES_PER_BLOCK;
    for (let c = 0; c < channels; c++) {
      const mean = sums[c] / frames;
      pooled[c] = mean;
      pooled[channels + c] = Math.sqrt(Math.max(VARIANCE_FLOOR, sums[channels + c] / frames - mean * mean));
    }
    return pooled;
  }

  #gathered(blocks: readonly number[]): [Float32Array, number] {
    const perBlock = this.blockSamples / FBANK_SHIFT_SAMPLES;
    const views = blocks.map((block) => this.#feats.view(block * perBlock, (block + 1) * perBlock));
    const feats = concatenated(Float32Array, views);
    subtractMean(feats);
    return [feats, feats.length / BANDS];
  }

  save(): StreamBufferState {
    return {
      samples: this.#samples.save(),
      feats: this.#feats.save(),
      blocks: this.#blocks?.save(),
      frames: this.#rest,
      trunk: this.#trunkState,
      trunkEnd: this.#trunkEnd,
      channels: (this.#blocks?.width ?? 0) / 2,
    };
  }

  restore({ samples, feats, blocks, frames, trunk, trunkEnd, channels }: StreamBufferState): void {
    this.#samples.restore(samples);
    this.#feats.restore(feats);
    if (!blocks) return;
    this.#rest = frames;
    this.#trunkState = trunk;
    this.#trunkEnd = trunkEnd;
    this.#blocks = this.#emptyBlocks(channels);
    this.#blocks.restore(blocks);
  }
}

/** Row of a block. @param values [frames, channels], the block starts at `offset` */
function sumsOf(values: Float32Array, offset: number, channels: number): Float32Array {
  const row = new Float32Array(2 * channels);
  for (let frame = 0; frame < FRAMES_PER_BLOCK; frame++) {
    for (let c = 0; c < channels; c++) {
      const value = values[offset + frame * channels + c];
      row[c] += value;
      row[channels + c] += value * value;
    }
  }
  return row;
}

/** Blocks of a stream from which embeddings can be taken; implemented by `StreamBuffer`. */
export interface BlockSource {
  readonly blockSamples: number;
  readonly blocks: { readonly from: number; readonly to: number };
  embed(blocks: readonly number[]): Promise<Float32Array | undefined>;
}

/**
 * The blocks inside [fromSample, toSample) of which most frames are kept; undefined if they are too short for an
 * embedding.
 *
 * @param keeps whether a frame of the stream belongs to the embedding
 */
export function keptBlocks(
  { blockSamples, blocks: available }: BlockSource,
  fromSample: number,
  toSample: number,
  frameShiftSamples: number,
  keeps: (frame: number) => boolean,
): { readonly blocks: readonly number[]; readonly seconds: number } | undefined {
  const first = Math.max(available.from, Math.ceil(fromSample / blockSamples));
  const last = Math.min(available.to, Math.floor(toSample / blockSamples));
  const blocks: number[] = [];
  for (let block = first; block < last; block++) {
    const from = Math.ceil((block * blockSamples) / frameShiftSamples);
    const to = Math.ceil(((block + 1) * blockSamples) / frameShiftSamples);
    let kept = 0;
    for (let frame = from; frame < to; frame++) if (keeps(frame)) kept++;
    if (kept >= LIVE.minBlockShare * (to - from)) blocks.push(block);
  }
  const seconds = (blocks.length * blockSamples) / SAMPLE_RATE_HZ;
  return seconds < LIVE.minVoiceSeconds ? undefined : { blocks, seconds };
}
