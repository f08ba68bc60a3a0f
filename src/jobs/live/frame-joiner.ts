/** A telephony frame: 20 ms at 8 kHz, one byte per sample. */
const TELEPHONY_FRAME_BYTES = 160;
/** µ-law code of zero. */
const SILENCE = 0xff;

/** Joins telephony frames into the stream's frames of 100 ms. */
export class FrameJoiner {
  #pending: Uint8Array;

  constructor(
    private readonly frameBytes: number,
    pending: Uint8Array = new Uint8Array(0),
  ) {
    this.#pending = pending;
  }

  /** Bytes since the last whole frame. */
  get pending(): Uint8Array {
    return this.#pending;
  }

  /** @returns the whole frames; undefined unless `bytes` holds whole telephony frames */
  push(bytes: Uint8Array): ArrayBuffer[] | undefined {
    if (bytes.length === 0 || bytes.length % TELEPHONY_FRAME_BYTES !== 0) return undefined;
    const joined = new Uint8Array(this.#pending.length + bytes.length);
    joined.set(this.#pending);
    joined.set(bytes, this.#pending.length);
    const whole = Math.floor(joined.length / this.frameBytes);
    this.#pending = joined.slice(whole * this.frameBytes);
    return Array.from({ length: whole }, (_, i) => joined.slice(i * this.frameBytes, (i + 1) * this.frameBytes).buffer);
  }

  /** The last frame, padded with silence; undefined if no bytes are pending. */
  flush(): ArrayBuffer | undefined {
    if (this.#pending.length === 0) return undefined;
    const frame = new Uint8Array(this.frameBytes).fill(SILENCE);
    frame.set(this.#pending);
    this.#pending = new Uint8Array(0);
    return frame.buffer;
  }
}
