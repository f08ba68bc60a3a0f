/** A frame of telephony: 20 ms of 8 kHz in a byte a sample. */
const TELEPHONY_FRAME_BYTES = 160;
/** µ-law of a sample of zero. */
const SILENCE = 0xff;

/** Joins telephone frames to those of the stream, which have 100 ms. */
export class FrameJoiner {
  #pending: Uint8Array;

  constructor(
    private readonly frameBytes: number,
    pending: Uint8Array = new Uint8Array(0),
  ) {
    this.#pending = pending;
  }

  /** What has come since the last whole frame. */
  get pending(): Uint8Array {
    return this.#pending;
  }

  /** @returns the frames that are whole; undefined for bytes that are no number of telephone frames */
  push(bytes: Uint8Array): ArrayBuffer[] | undefined {
    if (bytes.length === 0 || bytes.length % TELEPHONY_FRAME_BYTES !== 0) return undefined;
    const joined = new Uint8Array(this.#pending.length + bytes.length);
    joined.set(this.#pending);
    joined.set(bytes, this.#pending.length);
    const whole = Math.floor(joined.length / this.frameBytes);
    this.#pending = joined.slice(whole * this.frameBytes);
    return Array.from({ length: whole }, (_, i) => joined.slice(i * this.frameBytes, (i + 1) * this.frameBytes).buffer);
  }

  /** The last frame, filled up with silence; undefined where nothing is left. */
  flush(): ArrayBuffer | undefined {
    if (this.#pending.length === 0) return undefined;
    const frame = new Uint8Array(this.frameBytes).fill(SILENCE);
    frame.set(this.#pending);
    this.#pending = new Uint8Array(0);
    return frame.buffer;
  }
}
