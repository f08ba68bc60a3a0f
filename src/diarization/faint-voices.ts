import { release } from '../audio/memory.ts';
import { hopFrom, hopsOf, LEVEL_HOP_SAMPLES, shareAround } from './levels.ts';
import { POWER_BANDS, POWER_SHIFT_SAMPLES } from './mel-powers.ts';
import type { VoicingPort } from './types.ts';

export interface FaintVoiceParameters {
  /** Periodicity, 0…1, above which a tenth of a second is voiced. */
  readonly minPeriodicity: number;
  /** A place is somebody's voice where so large a share of the tenths around it is voiced… */
  readonly minVoicedShare: number;
  /** …as far as this to either side. */
  readonly reachSeconds: number;
  /** What is at most so much quieter than the loud parts of a window stays as it is. */
  readonly plainDb: number;
  /** Share of what is missing beyond that by which voices are raised. */
  readonly raiseShare: number;
  /** They are raised by this at most. */
  readonly maxRaiseDb: number;
}

const FRAMES_PER_HOP = LEVEL_HOP_SAMPLES / POWER_SHIFT_SAMPLES;
/** The loud end of a window: this share of its tenths lies below. */
const LOUD_SHARE = 0.95;
/** A tenth is as loud as the loudest so close to it: between the syllables of a voice lies its own quiet. */
const HOLD_HOPS = 2;
/** Added to the power of a tenth, for digital silence. */
const LEAST_POWER = 1e-12;

/**
 * Raises faint voices in the mel powers of a window towards its loud ones. The segmentation divides a window by its mean power and hears
 * hardly anything of somebody 25 dB below whoever else talks in it: the far end of a call, a question from the audience. Only
 * what is periodic is raised, so that rustling and breath in a pause stay quiet. What comes out does not depend on which windows
 * were seen before, to the bit.
 */
export class FaintVoices {
  /** Sample at which the first whole tenth begins, and its frame in the window. */
  #startSample = Number.NaN;
  #firstFrame = 0;
  #hops = 0;
  /** [hops] dB */
  #levels = new Float32Array(0);
  /** [hops] of 0 and 1 */
  #voiced = new Uint8Array(0);
  #gains = new Float32Array(0);
  #raised = new Float32Array(0);

  constructor(
    private readonly voicing: VoicingPort,
    private readonly parameters: FaintVoiceParameters,
  ) {}

  /**
   * @param window samples
   * @param startSample where the window starts, in samples; the tenths lie on the recording's grid where it is a multiple of a frame shift
   * @param powers [frames, 64] of the window, left as they are
   * @returns `powers`, or what they are with the voices raised: valid until the next call
   */
  raise(window: Float32Array, startSample: number, powers: Float32Array): Float32Array {
    const frames = powers.length / POWER_BANDS;
    const offset = hopFrom(startSample) * LEVEL_HOP_SAMPLES - startSample;
    const firstFrame = Number.isInteger(offset / POWER_SHIFT_SAMPLES) ? offset / POWER_SHIFT_SAMPLES : 0;
    const hops = Math.floor((frames - firstFrame) / FRAMES_PER_HOP);
    if (hops <= 0) return powers;
    this.#update(window, startSample + firstFrame * POWER_SHIFT_SAMPLES, firstFrame, powers, hops);
    if (!this.#findGains()) return powers;
    if (this.#raised.length !== powers.length) this.#raised = new Float32Array(powers.length);
    for (let frame = 0; frame < frames; frame++) {
      const factor = 10 ** (this.#gainAt(frame) / 10);
      for (let at = frame * POWER_BANDS; at < (frame + 1) * POWER_BANDS; at++) this.#raised[at] = factor * powers[at];
    }
    return this.#raised;
  }

  /** Gives its memory back; nothing may be raised afterwards. */
  close(): void {
    release(this.#raised, this.#levels, this.#voiced, this.#gains);
  }

  /** Levels and voicing of the window's tenths; what the window before had inside is taken over from there. */
  #update(window: Float32Array, startSample: number, firstFrame: number, powers: Float32Array, hops: number): void {
    const shift = (startSample - this.#startSample) / LEVEL_HOP_SAMPLES;
    const inside = Number.isInteger(shift) && shift >= 0 ? Math.min(this.#hops - 1 - shift, hops - 1) : 0;
    const known = Math.max(1, inside);
    if (hops > this.#levels.length) {
      this.#levels = larger(this.#levels, new Float32Array(hops));
      this.#voiced = larger(this.#voiced, new Uint8Array(hops));
      this.#gains = new Float32Array(hops);
    }
    if (known > 1) {
      this.#levels.copyWithin(1, 1 + shift, known + shift);
      this.#voiced.copyWithin(1, 1 + shift, known + shift);
    }
    this.#hops = hops;
    this.#startSample = startSample;
    this.#firstFrame = firstFrame;
    // The first tenth and the last one hold frames at the window's edges, which are its own.
    this.#measure(window, powers, 0, 1);
    this.#measure(window, powers, known, hops);
  }

  #measure(window: Float32Array, powers: Float32Array, from: number, to: number): void {
    const { minPeriodicity } = this.parameters;
    const firstSample = this.#firstFrame * POWER_SHIFT_SAMPLES;
    const periodicity = this.voicing.compute(
      window.subarray(firstSample + from * LEVEL_HOP_SAMPLES, firstSample + to * LEVEL_HOP_SAMPLES),
    );
    for (let hop = from; hop < to; hop++) {
      const frame = this.#firstFrame + hop * FRAMES_PER_HOP;
      let power = LEAST_POWER;
      for (let at = frame * POWER_BANDS; at < (frame + FRAMES_PER_HOP) * POWER_BANDS; at++) power += powers[at];
      this.#levels[hop] = 10 * Math.log10(power);
      this.#voiced[hop] = periodicity[hop - from] > minPeriodicity ? 1 : 0;
    }
  }

  /** @returns whether there is anything to raise */
  #findGains(): boolean {
    const { minVoicedShare, reachSeconds, plainDb, raiseShare, maxRaiseDb } = this.parameters;
    const reach = hopsOf(reachSeconds);
    const hops = this.#hops;
    const voiced = this.#voiced.subarray(0, hops);
    const loud = this.#levels.slice(0, hops).sort()[Math.floor(LOUD_SHARE * (hops - 1))];
    let isAnyRaised = false;
    for (let hop = 0; hop < hops; hop++) {
      let level = Number.NEGATIVE_INFINITY;
      for (let near = Math.max(0, hop - HOLD_HOPS); near <= Math.min(hops - 1, hop + HOLD_HOPS); near++) {
        level = Math.max(level, this.#levels[near]);
      }
      const missing = loud - level - plainDb;
      this.#gains[hop] =
        missing > 0 && shareAround(voiced, 1, hop, reach) >= minVoicedShare
          ? Math.min(maxRaiseDb, raiseShare * missing)
          : 0;
      if (this.#gains[hop] > 0) isAnyRaised = true;
    }
    return isAnyRaised;
  }

  /** In dB, interpolated between the middles of the tenths. */
  #gainAt(frame: number): number {
    const position = Math.min(this.#hops - 1, Math.max(0, (frame - this.#firstFrame + 0.5) / FRAMES_PER_HOP - 0.5));
    const before = Math.floor(position);
    const after = Math.min(this.#hops - 1, before + 1);
    return this.#gains[before] + (position - before) * (this.#gains[after] - this.#gains[before]);
  }
}

function larger<T extends Float32Array | Uint8Array>(before: T, after: T): T {
  after.set(before);
  return after;
}
