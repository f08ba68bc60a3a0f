import { grown, release } from '../audio/memory.ts';

/**
 * Sliding buffer over the samples of a shard: they come from a stream and are dropped when they are no longer needed,
 * so that memory holds tens of seconds. Positions are absolute samples of the recording. Samples that the stream does
 * not deliver, because the recording is shorter than its header states, read as silence.
 */
export class SampleBuffer {
  #samples = new Float32Array(1 << 16);
  #from: number;
  #filled = 0;
  #ended = false;
  readonly #source: AsyncIterator<Float32Array>;

  /** @param startSample position of the stream's first sample */
  constructor(source: AsyncIterable<Float32Array>, startSample: number) {
    this.#source = source[Symbol.asyncIterator]();
    this.#from = startSample;
  }

  /** Position after the last sample received. */
  get receivedUntil(): number {
    return this.#from + this.#filled;
  }

  /** Reads until the buffer has the samples before `endSample`, or the stream ends. */
  async fill(endSample: number): Promise<void> {
    while (!this.#ended && this.receivedUntil < endSample) {
      const next = await this.#source.next();
      if (next.done === true) this.#ended = true;
      else this.#append(next.value);
    }
  }

  /** Ends the stream, so that its decoder can be closed; `view` must not be called after it. */
  async close(): Promise<void> {
    this.#ended = true;
    release(this.#samples);
    await this.#source.return?.();
  }

  /**
   * Samples [fromSample, endSample), valid until the next call of any method; zeros for samples not received.
   * @throws if some of them have been dropped
   */
  view(fromSample: number, endSample: number): Float32Array {
    if (fromSample < this.#from) throw new Error(`samples before ${this.#from} are gone`);
    const first = fromSample - this.#from;
    if (endSample <= this.receivedUntil) return this.#samples.subarray(first, endSample - this.#from);
    const padded = new Float32Array(endSample - fromSample);
    if (first < this.#filled) padded.set(this.#samples.subarray(first, this.#filled));
    return padded;
  }

  /** Drops the samples before `sample`. */
  discardBefore(sample: number): void {
    const drop = Math.min(sample - this.#from, this.#filled);
    if (drop <= 0) return;
    this.#samples.copyWithin(0, drop, this.#filled);
    this.#from += drop;
    this.#filled -= drop;
  }

  #append(block: Float32Array): void {
    const needed = this.#filled + block.length;
    const larger = grown(this.#samples, this.#filled, needed);
    if (larger !== this.#samples) release(this.#samples);
    this.#samples = larger;
    this.#samples.set(block, this.#filled);
    this.#filled = needed;
  }
}
