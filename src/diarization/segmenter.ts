import { release } from '../audio/memory.ts';
import { POWER_BANDS, POWER_SHIFT_SAMPLES } from './mel-powers.ts';
import type { MelPowerPort, SegmentationInfo, SegmentationPort } from './types.ts';

const FRAME_SAMPLES = 400;
/** Frame f of a window is centred on sample 160 f + 80 of it, so that it begins this far before 160 f. */
const LEAD_SAMPLES = 120;

/**
 * Segmentation of one recording or stream, window by window. Windows overlap: for a model with a separate front end the
 * mel powers that a window shares with the one before are computed once. As in a model with its front end inside,
 * samples outside the window count as silence, so the first and last frame are not shared. The result does not depend,
 * to the bit, on the windows before.
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
   * @param window samples, most often as many as in the call before
   * @param startSample where the window starts, in samples
   * @returns log-probabilities [frames, classes], the caller's
   */
  run(window: Float32Array, startSample: number): Promise<Float32Array> {
    if (this.port.form === 'whole') return this.port.run(window);
    const frames = Math.floor(window.length / POWER_SHIFT_SAMPLES);
    this.#update(window, startSample, frames);
    return this.port.run(this.#powers, frames);
  }

  /** Gives its memory back; nothing may be run afterwards. */
  close(): void {
    release(this.#powers);
  }

  #update(window: Float32Array, startSample: number, frames: number): void {
    const known = this.#takeOver(startSample, frames);
    this.#startSample = startSample;
    // From the first frame that is new to the last but one, and the two at the edges.
    if (known < frames - 1) {
      const from = known * POWER_SHIFT_SAMPLES - LEAD_SAMPLES;
      const to = (frames - 2) * POWER_SHIFT_SAMPLES - LEAD_SAMPLES + FRAME_SAMPLES;
      this.#powers.set(this.melPower.compute(window.subarray(from, to)), known * POWER_BANDS);
    }
    for (const frame of new Set([0, frames - 1])) this.#edge(window.subarray(0, frames * POWER_SHIFT_SAMPLES), frame);
  }

  /** Moves what is known of the window to its place. @returns the first inner frame that is not known */
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
