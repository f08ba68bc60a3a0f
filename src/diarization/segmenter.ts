import { release } from '../audio/memory.ts';
import type { MelPowerPort, SegmentationInfo, SegmentationPort } from './model-ports.ts';
import { argmax } from './numerics.ts';

/** Mel powers of the segmentation's front end, see `MelPowerPort`. */
export const POWER_BANDS = 64;
export const POWER_SHIFT_SAMPLES = 160;

/**
 * The powerset of local speakers: every subset with at most `maxSimultaneous` members is one class.
 * (Plaquet & Bredin, "Powerset multi-class cross entropy loss for neural speaker diarization", 2023)
 */
export interface Powerset {
  readonly speakers: number;
  readonly classes: number;
  /** [classes, speakers], 1 where the speaker is a member of the class */
  readonly mapping: Uint8Array;
  /** [classes], members of each class */
  readonly cardinality: Uint8Array;
}

/**
 * Classes in the order of the field: by size, then lexicographically.
 *
 * With 3 speakers, 2 at once: `{}`, `{1}`, `{2}`, `{3}`, `{1,2}`, `{1,3}`, `{2,3}`, so that `mapping` is
 * `000 100 010 001 110 101 011`.
 */
export function buildPowerset(speakers: number, maxSimultaneous: number): Powerset {
  const sets: number[][] = [];
  for (let size = 0; size <= Math.min(maxSimultaneous, speakers); size++) sets.push(...combinations(speakers, size));
  const mapping = new Uint8Array(sets.length * speakers);
  sets.forEach((members, index) => {
    for (const member of members) mapping[index * speakers + member] = 1;
  });
  return { speakers, classes: sets.length, mapping, cardinality: Uint8Array.from(sets, (members) => members.length) };
}

function combinations(from: number, size: number, first = 0): number[][] {
  if (size === 0) return [[]];
  const found: number[][] = [];
  for (let head = first; head <= from - size; head++) {
    for (const tail of combinations(from, size - 1, head + 1)) found.push([head, ...tail]);
  }
  return found;
}

/**
 * Hard decoding: the members of each frame's most likely class.
 * scores [frames, classes] (logits, log-probabilities or probabilities) → [frames, speakers] of 0 and 1
 */
export function decodeHard(scores: ArrayLike<number>, powerset: Powerset): Uint8Array {
  const { classes, speakers, mapping } = powerset;
  const frames = scores.length / classes;
  const active = new Uint8Array(frames * speakers);
  for (let frame = 0; frame < frames; frame++) {
    const best = argmax(scores, frame * classes, classes);
    for (let speaker = 0; speaker < speakers; speaker++) {
      active[frame * speakers + speaker] = mapping[best * speakers + speaker];
    }
  }
  return active;
}

/**
 * Probability that each speaker is active, alone or with others.
 * probabilities [frames, classes], any scale → [frames, speakers], same scale
 */
export function marginals(probabilities: ArrayLike<number>, powerset: Powerset): Float32Array {
  const { classes, speakers, mapping } = powerset;
  const frames = probabilities.length / classes;
  const out = new Float32Array(frames * speakers);
  for (let frame = 0; frame < frames; frame++) {
    for (let index = 0; index < classes; index++) {
      const probability = probabilities[frame * classes + index];
      for (let speaker = 0; speaker < speakers; speaker++) {
        if (mapping[index * speakers + speaker] === 1) out[frame * speakers + speaker] += probability;
      }
    }
  }
  return out;
}

const FRAME_SAMPLES = 400;
/** Frame f of a window is centred on sample 160 f + 80 of it, so that it begins this far before 160 f. */
const LEAD_SAMPLES = 120;

/**
 * Segmentation of one recording or stream, window by window. For a model with a separate front end, mel powers that a
 * window shares with the previous one are computed once. Samples outside the window count as silence, as in a model
 * with its front end inside, so that the first and last frame are not shared. The result is bit-identical to that of
 * each window alone.
 */
export class Segmenter {
  #powers = new Float32Array(0);
  #startSample = Number.NaN;

  constructor(
    private readonly port: SegmentationPort,
    private readonly melPower: MelPowerPort,
  ) {}

  get info(): SegmentationInfo {
    return this.port.info;
  }

  /**
   * @param window samples, usually as many as in the previous call
   * @param startSample start of the window, in samples
   * @returns log-probabilities [frames, classes]; the caller owns the array
   */
  run(window: Float32Array, startSample: number): Promise<Float32Array> {
    if (this.port.form === 'whole') return this.port.run(window);
    const frames = Math.floor(window.length / POWER_SHIFT_SAMPLES);
    this.#update(window, startSample, frames);
    return this.port.run(this.#powers, frames);
  }

  /** Frees its memory; `run` must not be called after it. */
  close(): void {
    release(this.#powers);
  }

  #update(window: Float32Array, startSample: number, frames: number): void {
    const known = this.#takeOver(startSample, frames);
    this.#startSample = startSample;
    // New frames up to the last but one, then the two at the edges.
    if (known < frames - 1) {
      const from = known * POWER_SHIFT_SAMPLES - LEAD_SAMPLES;
      const to = (frames - 2) * POWER_SHIFT_SAMPLES - LEAD_SAMPLES + FRAME_SAMPLES;
      this.#powers.set(this.melPower.compute(window.subarray(from, to)), known * POWER_BANDS);
    }
    for (const frame of new Set([0, frames - 1])) this.#edge(window.subarray(0, frames * POWER_SHIFT_SAMPLES), frame);
  }

  /** Moves the shared powers to their new position. @returns first inner frame that must be computed */
  #takeOver(startSample: number, frames: number): number {
    const powers = this.#powers;
    const shift = (startSample - this.#startSample) / POWER_SHIFT_SAMPLES;
    if (powers.length !== frames * POWER_BANDS) {
      this.#powers = new Float32Array(frames * POWER_BANDS);
      return 1;
    }
    if (!Number.isInteger(shift) || shift < 0 || shift >= frames - 2) return 1;
    powers.copyWithin(POWER_BANDS, (1 + shift) * POWER_BANDS, (frames - 1) * POWER_BANDS);
    return frames - 1 - shift;
  }

  #edge(window: Float32Array, frame: number): void {
    const samples = new Float32Array(FRAME_SAMPLES);
    const from = frame * POWER_SHIFT_SAMPLES - LEAD_SAMPLES;
    const first = Math.max(0, from);
    samples.set(window.subarray(first, from + FRAME_SAMPLES), first - from);
    this.#powers.set(this.melPower.compute(samples), frame * POWER_BANDS);
  }
}
