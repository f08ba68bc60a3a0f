import { concatenated, release } from '../audio/memory.ts';
import type { EmbeddingPort, FilterbankPort, PoolingInput, PoolingPort, TrunkOutput } from './model-ports.ts';
import { normalise } from './numerics.ts';
import type { SampleBuffer } from './sample-buffer.ts';
import { type Stretch, stretchAt } from './windows.ts';

/** Filterbank bands of the embedders. */
export const BANDS = 80;

/** Quantile of the frame levels that counts as the loud level of a stretch. */
const LOUD_QUANTILE = 0.95;

/**
 * Raises energies far below the loudest speech of the stretch to a floor, in place. Digital silence lies more than ten
 * nats of log energy below a quiet room. Mean subtraction would spread that difference, which carries no information
 * about a voice, over all frames: with zeroed pauses the equal error rate of an embedder rose from 10 % to 45 %, and
 * with this floor it does not.
 *
 * @param feats [frames, 80] log-mel energies
 * @param depthNats distance of the floor below the 95th percentile of the frames' loudest bands
 */
export function raiseFloor(feats: Float32Array, depthNats: number): void {
  const floor = floorOf(feats, depthNats);
  for (let index = 0; index < feats.length; index++) {
    if (feats[index] < floor) feats[index] = floor;
  }
}

/** Floor of a stretch in nats, see `raiseFloor`; −∞ without frames. */
function floorOf(feats: Float32Array, depthNats: number): number {
  const frames = feats.length / BANDS;
  if (frames === 0) return Number.NEGATIVE_INFINITY;
  const peaks = new Float32Array(frames).fill(Number.NEGATIVE_INFINITY);
  for (let frame = 0; frame < frames; frame++) {
    let peak = Number.NEGATIVE_INFINITY;
    for (let index = frame * BANDS; index < (frame + 1) * BANDS; index++) {
      if (feats[index] > peak) peak = feats[index];
    }
    peaks[frame] = peak;
  }
  peaks.sort();
  return Math.fround(peaks[Math.floor(LOUD_QUANTILE * (frames - 1))] - depthNats);
}

/** Subtracts the mean over time of each band, in place. feats [frames, 80] */
export function subtractMean(feats: Float32Array): void {
  const frames = feats.length / BANDS;
  if (frames === 0) return;
  const mean = new Float64Array(BANDS);
  for (let at = 0; at < feats.length; at += BANDS) {
    for (let band = 0; band < BANDS; band++) mean[band] += feats[at + band];
  }
  for (let band = 0; band < BANDS; band++) mean[band] /= frames;
  for (let at = 0; at < feats.length; at += BANDS) {
    for (let band = 0; band < BANDS; band++) feats[at + band] -= mean[band];
  }
}

/**
 * The last frames of a stretch, normalised with the floor and the mean of all its frames: equals `raiseFloor` and
 * `subtractMean`, but processes only these frames.
 *
 * @param feats [frames, 80], not changed
 * @param from the first frame to return
 * @param depthNats as for `raiseFloor`; undefined for no floor
 * @returns [frames − from, 80]
 */
export function normalisedTail(feats: Float32Array, from: number, depthNats: number | undefined): Float32Array {
  const floor = depthNats === undefined ? Number.NEGATIVE_INFINITY : floorOf(feats, depthNats);
  const mean = new Float64Array(BANDS);
  for (let at = 0; at < feats.length; at += BANDS) {
    for (let band = 0; band < BANDS; band++) mean[band] += Math.max(floor, feats[at + band]);
  }
  const tail = feats.slice(from * BANDS);
  for (let band = 0; band < BANDS; band++) mean[band] /= feats.length / BANDS;
  for (let at = 0; at < tail.length; at += BANDS) {
    for (let band = 0; band < BANDS; band++) tail[at + band] = Math.max(floor, tail[at + band]) - mean[band];
  }
  return tail;
}

const FBANK_SHIFT_SAMPLES = 160;
const FBANK_CENTRE_SAMPLES = 200;

/** Results for one stretch: features for a whole embedder, trunk output for a split one. */
type Analysed = { readonly stretch: Stretch } & (
  | { readonly form: 'split'; readonly trunk: TrunkOutput | undefined }
  | { readonly form: 'whole'; readonly feats: Float32Array }
);

/** Masks of a window, one per embedding. */
interface EmbeddingRequest {
  readonly windowStartSample: number;
  readonly windowSamples: number;
  /** [frames] per speaker, non-zero where kept */
  readonly masks: readonly Uint8Array[];
  readonly frameShiftSamples: number;
  readonly frameSizeSamples: number;
}

/**
 * Embeddings of a window's local speakers. Features and trunk are computed once per stretch of the recording, for all
 * windows that touch it, and never for a stretch without an active speaker.
 */
export class Embedder {
  readonly #stretches = new Map<number, Analysed>();

  constructor(
    private readonly ports: {
      readonly embedding: EmbeddingPort;
      readonly filterbank: FilterbankPort;
      readonly pooling: PoolingPort;
    },
    private readonly samples: SampleBuffer,
    private readonly totalSamples: number,
    private readonly pause: () => Promise<void>,
  ) {}

  /** One vector of unit length per mask; undefined if the mask keeps no feature frame. */
  async embed(request: EmbeddingRequest): Promise<(Float32Array | undefined)[]> {
    const { masks, windowStartSample } = request;
    if (masks.length === 0) return [];
    const { stretchSamples } = this.ports.embedding.info;
    const end = Math.min(windowStartSample + request.windowSamples, this.totalSamples);
    const touched: Analysed[] = [];
    for (let index = Math.floor(windowStartSample / stretchSamples); index * stretchSamples < end; index++) {
      if (this.#isActive(index, request)) touched.push(await this.#analyse(index));
    }
    return this.ports.embedding.form === 'split'
      ? this.#headOfPooled(touched, request)
      : this.#wholeOfKept(touched, request);
  }

  /** Forgets stretches that end at or before `sample`. */
  discardBefore(sample: number): void {
    const { stretchSamples } = this.ports.embedding.info;
    for (const index of this.#stretches.keys()) {
      if ((index + 1) * stretchSamples > sample) continue;
      const analysed = this.#stretches.get(index);
      if (analysed?.form === 'split' && analysed.trunk) release(analysed.trunk.frames);
      this.#stretches.delete(index);
    }
  }

  /** Frees all memory; `embed` must not be called after it. */
  close(): void {
    this.discardBefore(Number.POSITIVE_INFINITY);
  }

  #isActive(index: number, request: EmbeddingRequest): boolean {
    const { stretchSamples } = this.ports.embedding.info;
    const { masks, windowStartSample, frameShiftSamples, frameSizeSamples } = request;
    const centre = (frame: number) => windowStartSample + frame * frameShiftSamples + frameSizeSamples / 2;
    return masks.some((mask) =>
      mask.some((kept, frame) => kept !== 0 && Math.floor(centre(frame) / stretchSamples) === index),
    );
  }

  async #analyse(index: number): Promise<Analysed> {
    const known = this.#stretches.get(index);
    if (known !== undefined) return known;
    const { embedding, filterbank } = this.ports;
    const stretch = stretchAt(index, embedding.info.stretchSamples, this.totalSamples);
    await this.samples.fill(stretch.toSample);
    const feats = filterbank.compute(this.samples.view(stretch.fromSample, stretch.toSample));
    let analysed: Analysed;
    if (embedding.form === 'whole') {
      analysed = { stretch, form: 'whole', feats: feats.slice() };
    } else {
      const frames = feats.length / BANDS;
      if (embedding.info.featureFloorNats !== undefined) raiseFloor(feats, embedding.info.featureFloorNats);
      subtractMean(feats);
      analysed = { stretch, form: 'split', trunk: frames === 0 ? undefined : await embedding.trunk(feats, frames) };
      await this.pause();
    }
    this.#stretches.set(index, analysed);
    return analysed;
  }

  async #headOfPooled(touched: readonly Analysed[], request: EmbeddingRequest): Promise<(Float32Array | undefined)[]> {
    const { embedding, pooling } = this.ports;
    if (embedding.form !== 'split') throw new Error('unreachable: the form is checked by the caller');
    const pooled = request.masks.map((mask) => {
      const inputs: PoolingInput[] = [];
      for (const { stretch, ...analysed } of touched) {
        if (analysed.form !== 'split' || analysed.trunk === undefined) continue;
        const { trunk } = analysed;
        inputs.push({ trunk, mask: this.#maskOnStretch(stretch, trunk.frameCount, mask, request) });
      }
      return pooling.pool(inputs);
    });
    const present = pooled.filter((vector) => vector !== undefined);
    if (present.length === 0) return pooled.map(() => undefined);
    const batch = concatenated(Float32Array, present);
    release(...present);
    const embeddings = await embedding.head(batch, present.length);
    release(batch);
    const { dimension } = embedding.info;
    let row = 0;
    const results = pooled.map((vector) => {
      if (vector === undefined) return undefined;
      const result = embeddings.slice(row * dimension, (row + 1) * dimension);
      row++;
      return unit(result);
    });
    release(embeddings);
    return results;
  }

  async #wholeOfKept(touched: readonly Analysed[], request: EmbeddingRequest): Promise<(Float32Array | undefined)[]> {
    const { embedding } = this.ports;
    if (embedding.form !== 'whole') throw new Error('unreachable: the form is checked by the caller');
    const results: (Float32Array | undefined)[] = [];
    for (const mask of request.masks) {
      const rows: Float32Array[] = [];
      for (const { stretch, ...analysed } of touched) {
        if (analysed.form !== 'whole') continue;
        const { feats } = analysed;
        const kept = this.#maskOnStretch(stretch, feats.length / BANDS, mask, request);
        kept.forEach((keep, frame) => {
          if (keep !== 0) rows.push(feats.subarray(frame * BANDS, (frame + 1) * BANDS));
        });
      }
      if (rows.length === 0) {
        results.push(undefined);
        continue;
      }
      const gathered = concatenated(Float32Array, rows);
      subtractMean(gathered);
      const vector = (await embedding.embed(gathered, rows.length)).slice();
      await this.pause();
      results.push(unit(vector));
    }
    return results;
  }

  /** The mask resampled from the window's frames to the stretch's frames, by the closest centre. */
  #maskOnStretch(stretch: Stretch, frames: number, mask: Uint8Array, request: EmbeddingRequest): Uint8Array {
    const { embedding } = this.ports;
    const stride = embedding.form === 'split' ? embedding.info.frameStride : 1;
    const kept = new Uint8Array(frames);
    for (let frame = 0; frame < frames; frame++) {
      const centre = stretch.fromSample + frame * stride * FBANK_SHIFT_SAMPLES + FBANK_CENTRE_SAMPLES;
      if (centre < stretch.ownFromSample) continue;
      const inWindow = centre - request.windowStartSample - request.frameSizeSamples / 2;
      const closest = Math.round(inWindow / request.frameShiftSamples);
      if (closest >= 0 && closest < mask.length && mask[closest] !== 0) kept[frame] = 1;
    }
    return kept;
  }
}

/**
 * Scales the vector to unit length, in place. Undefined if it is not finite: some models take the variance of a single
 * frame, and one NaN would spread to all embeddings of the recording.
 */
function unit(vector: Float32Array): Float32Array | undefined {
  normalise(vector, 0, vector.length);
  // `every(Number.isFinite)` would allocate an object for each of millions of numbers.
  for (let index = 0; index < vector.length; index++) if (!Number.isFinite(vector[index])) return undefined;
  return vector;
}
