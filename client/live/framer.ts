/** Samples of a frame: 100 ms at 16 kHz, the rate of a stream that asks for no other. */
export const FRAME_SAMPLES = 1600;
export const SAMPLE_RATE_HZ = 16_000;
export const FRAMES_PER_SECOND = 10;
const BYTES_PER_SAMPLE = 4;

/** Cuts audio of any chunking into frames of 100 ms as they go over the wire (32-bit float, little-endian). */
export class Framer {
  private readonly frameSamples: number;
  private frame: DataView<ArrayBuffer>;
  private filled = 0;

  constructor(sampleRateHz = SAMPLE_RATE_HZ) {
    this.frameSamples = sampleRateHz / FRAMES_PER_SECOND;
    this.frame = this.empty();
  }

  /** The frames that are complete with these samples, made one at a time. */
  *push(samples: Float32Array): Generator<Uint8Array<ArrayBuffer>> {
    for (const sample of samples) {
      this.frame.setFloat32(BYTES_PER_SAMPLE * this.filled++, sample, true);
      if (this.filled === this.frameSamples) yield this.take();
    }
  }

  /** What is left, padded with silence; undefined when nothing is. */
  flush(): Uint8Array<ArrayBuffer> | undefined {
    return this.filled === 0 ? undefined : this.take();
  }

  private take(): Uint8Array<ArrayBuffer> {
    const frame = new Uint8Array(this.frame.buffer);
    this.frame = this.empty();
    this.filled = 0;
    return frame;
  }

  private empty(): DataView<ArrayBuffer> {
    return new DataView(new ArrayBuffer(BYTES_PER_SAMPLE * this.frameSamples));
  }
}
