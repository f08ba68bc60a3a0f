/** Samples of a frame: 100 ms at 16 kHz. */
export const FRAME_SAMPLES = 1600;
export const SAMPLE_RATE_HZ = 16_000;
const BYTES_PER_SAMPLE = 4;
export const FRAME_BYTES = FRAME_SAMPLES * BYTES_PER_SAMPLE;

/** Cuts audio of any chunking into frames as they go over the wire (32-bit float, little-endian). */
export class Framer {
  private frame = new DataView(new ArrayBuffer(FRAME_BYTES));
  private filled = 0;

  /** The frames that are complete with these samples, made one at a time. */
  *push(samples: Float32Array): Generator<Uint8Array<ArrayBuffer>> {
    for (const sample of samples) {
      this.frame.setFloat32(BYTES_PER_SAMPLE * this.filled++, sample, true);
      if (this.filled === FRAME_SAMPLES) yield this.take();
    }
  }

  /** What is left, padded with silence; undefined when nothing is. */
  flush(): Uint8Array<ArrayBuffer> | undefined {
    return this.filled === 0 ? undefined : this.take();
  }

  private take(): Uint8Array<ArrayBuffer> {
    const frame = new Uint8Array(this.frame.buffer);
    this.frame = new DataView(new ArrayBuffer(FRAME_BYTES));
    this.filled = 0;
    return frame;
  }
}
