import type { Resampler, ResamplerPort } from '../../audio/audio-ports.ts';

const SESSION_RATE_HZ = 16_000;
const NOTHING = new Float32Array(0);

/** All that is needed to go on with a stream's samples. */
export interface InputState {
  readonly receivedSamples: number;
  readonly returnedSamples: number;
  /** The end of what was received, as far as outputs to come need it. */
  readonly tail: Float32Array;
}

/**
 * Brings a stream's samples to 16 kHz. What comes out does not depend on how often it was suspended. It is late by what the filter looks ahead, 2 to 4 ms,
 * and not short by it: so a frame of 100 ms gives 1600 samples, and no look at the stream has to wait for the frame behind.
 */
export class LiveInput {
  #received: number;
  #returned: number;
  #tail: Float32Array;
  #resampler: Resampler | undefined;

  constructor(
    private readonly rateHz: number,
    private readonly resamplers: ResamplerPort,
    state: InputState = { receivedSamples: 0, returnedSamples: 0, tail: NOTHING },
  ) {
    this.#received = state.receivedSamples;
    this.#returned = state.returnedSamples;
    this.#tail = state.tail;
  }

  /** @returns as many samples at 16 kHz as there is time in these; they are the caller's */
  push(samples: Float32Array): Float32Array {
    if (this.rateHz === SESSION_RATE_HZ) return samples;
    const isFirst = this.#received === 0;
    const resampled = this.#open().push(samples).slice();
    this.#received += samples.length;
    this.#returned += resampled.length;
    this.#keepTail(samples);
    if (!isFirst) return resampled;
    const whole = new Float32Array(Math.round((samples.length * SESSION_RATE_HZ) / this.rateHz));
    whole.set(resampled, whole.length - resampled.length);
    return whole;
  }

  get state(): InputState {
    return { receivedSamples: this.#received, returnedSamples: this.#returned, tail: this.#tail };
  }

  /** Frees the resampler's memory, which nobody else would: it is not the garbage collector's. */
  suspend(): InputState {
    this.#resampler?.close();
    this.#resampler = undefined;
    return this.state;
  }

  #open(): Resampler {
    if (this.#resampler) return this.#resampler;
    const tailStart = this.#received - this.#tail.length;
    const firstInput = Math.max(tailStart, this.#firstNeeded());
    const resampler = this.resamplers.open(this.rateHz, firstInput, this.#returned);
    if (this.#received > firstInput) resampler.push(this.#tail.subarray(firstInput - tailStart));
    this.#resampler = resampler;
    return resampler;
  }

  /** First sample that the next output looks at. */
  #firstNeeded(): number {
    const position = Math.floor((this.#returned * this.rateHz) / SESSION_RATE_HZ);
    return Math.max(0, position - this.resamplers.contextInputSamples(this.rateHz));
  }

  #keepTail(samples: Float32Array): void {
    const joined = new Float32Array(this.#tail.length + samples.length);
    joined.set(this.#tail);
    joined.set(samples, this.#tail.length);
    const needed = this.#received - this.#firstNeeded();
    this.#tail = joined.slice(Math.max(0, joined.length - needed));
  }
}
