import { BANDS, raiseFloor, subtractMean } from '../diarization/features.ts';
import { normalise } from '../diarization/vectors.ts';
import { LIVE } from './parameters.ts';
import { Ring } from './ring.ts';
import type { LiveEngine } from './types.ts';

const FBANK_SHIFT = 160;
const FBANK_SIZE = 400;
/** Embedder frames that are kept: a piece, and some more. */
const KEPT_SECONDS = 2;

/** What an `Ear` holds between two calls. */
export interface EarState {
  readonly samples: { readonly start: number; readonly rows: Float32Array };
  readonly feats: { readonly start: number; readonly rows: Float32Array };
  readonly frames: { readonly start: number; readonly rows: Float32Array } | undefined;
  readonly logits: { readonly start: number; readonly rows: Float32Array } | undefined;
  readonly channels: number;
}

/**
 * The last seconds of a stream in the forms that the models need: samples, filterbank, and the embedding trunk's frames, each
 * computed once as the audio comes. Features are normalised over the last ten seconds, as far as they go.
 */
export class Ear {
  readonly #samples = new Ring(1, LIVE.windowSamples + 2 * FBANK_SIZE + 16_000);
  readonly #feats = new Ring(BANDS, LIVE.normalisationFrames + 200);
  #frames: Ring | undefined;
  #logits: Ring | undefined;

  constructor(private readonly engine: Pick<LiveEngine, 'embedding' | 'filterbank' | 'pooling'>) {}

  /** Samples heard so far. */
  get end(): number {
    return this.#samples.end;
  }

  /** @param samples at most a second */
  hear(samples: Float32Array): void {
    this.#samples.push(samples);
    const from = this.#feats.end * FBANK_SHIFT;
    if (this.end - from < FBANK_SIZE) return;
    this.#feats.push(this.engine.filterbank.compute(this.#samples.view(from, this.end)));
  }

  /** The samples [from, to), zeros before the stream began. */
  window(from: number, to: number): Float32Array {
    const out = new Float32Array(to - from);
    const first = Math.max(0, from);
    out.set(this.#samples.view(first, to), first - from);
    return out;
  }

  /** Runs the trunk over what has come since the last call, but for the last frames, whose context is still missing. */
  async understand(): Promise<void> {
    const { embedding } = this.engine;
    if (embedding.form !== 'split') return;
    const stride = embedding.info.frameStride;
    const done = (this.#frames?.end ?? 0) * stride;
    const until = Math.floor((this.#feats.end - LIVE.trunkLagFrames) / stride) * stride;
    if (until <= done) return;
    const lead = Math.ceil(LIVE.trunkLeadFrames / stride) * stride;
    const first = Math.max(0, Math.ceil(this.#feats.start / stride) * stride, done - lead);
    const { frames, logits, frameCount, channels } = await embedding.trunk(
      this.#normalised(first),
      this.#feats.end - first,
    );
    this.#frames ??= new Ring(channels, Math.ceil((KEPT_SECONDS * 100) / stride));
    this.#logits ??= new Ring(channels, Math.ceil((KEPT_SECONDS * 100) / stride));
    const from = (done - first) / stride;
    const to = Math.min(frameCount, (until - first) / stride);
    this.#frames.push(frames.subarray(from * channels, to * channels));
    this.#logits.push(logits.subarray(from * channels, to * channels));
  }

  /** Features [from, end) with the floor and the mean of the last ten seconds. */
  #normalised(from: number): Float32Array {
    const start = Math.max(this.#feats.start, Math.min(from, this.#feats.end - LIVE.normalisationFrames));
    const feats = this.#feats.view(start, this.#feats.end).slice();
    const { featureFloorNats } = this.engine.embedding.info;
    if (featureFloorNats !== undefined) raiseFloor(feats, featureFloorNats);
    subtractMean(feats);
    return feats.subarray((from - start) * BANDS);
  }

  /**
   * Embedding of the speech in the last seconds.
   * @param keeps whether a moment (sample of the stream) belongs to the speaker
   * @returns [dimension] of unit length; undefined where nothing is kept
   */
  async embed(keeps: (sample: number) => boolean): Promise<Float32Array | undefined> {
    const { embedding } = this.engine;
    const vector = embedding.form === 'split' ? await this.#pooled(keeps) : await this.#gathered(keeps);
    if (vector !== undefined) normalise(vector, 0, vector.length);
    return vector;
  }

  async #pooled(keeps: (sample: number) => boolean): Promise<Float32Array | undefined> {
    const { embedding, pooling } = this.engine;
    if (embedding.form !== 'split' || !this.#frames || !this.#logits) return undefined;
    const { start, end, width: channels } = this.#frames;
    const mask = new Uint8Array(end - start);
    for (let frame = start; frame < end; frame++) {
      if (keeps(frame * embedding.info.frameStride * FBANK_SHIFT + FBANK_SIZE / 2)) mask[frame - start] = 1;
    }
    const trunk = {
      frames: this.#frames.view(start, end),
      logits: this.#logits.view(start, end),
      frameCount: end - start,
      channels,
    };
    const pooled = pooling.pool([{ trunk, mask }]);
    return pooled && (await embedding.head(pooled, 1)).slice();
  }

  async #gathered(keeps: (sample: number) => boolean): Promise<Float32Array | undefined> {
    const { embedding } = this.engine;
    if (embedding.form !== 'whole') return undefined;
    const first = Math.max(this.#feats.start, this.#feats.end - KEPT_SECONDS * 100);
    const kept: number[] = [];
    for (let frame = first; frame < this.#feats.end; frame++) {
      if (keeps(frame * FBANK_SHIFT + FBANK_SIZE / 2)) kept.push(...this.#feats.view(frame, frame + 1));
    }
    if (kept.length === 0) return undefined;
    const feats = Float32Array.from(kept);
    subtractMean(feats);
    return (await embedding.embed(feats, feats.length / BANDS)).slice();
  }

  save(): EarState {
    return {
      samples: this.#samples.save(),
      feats: this.#feats.save(),
      frames: this.#frames?.save(),
      logits: this.#logits?.save(),
      channels: this.#frames?.width ?? 0,
    };
  }

  restore({ samples, feats, frames, logits, channels }: EarState): void {
    this.#samples.restore(samples);
    this.#feats.restore(feats);
    const { embedding } = this.engine;
    if (!frames || !logits || embedding.form !== 'split') return;
    const capacity = Math.ceil((KEPT_SECONDS * 100) / embedding.info.frameStride);
    this.#frames = new Ring(channels, capacity);
    this.#logits = new Ring(channels, capacity);
    this.#frames.restore(frames);
    this.#logits.restore(logits);
  }
}
