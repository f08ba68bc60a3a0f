/** Samples of a frame, 100 ms, at the default rate of a stream. */
export const FRAME_SAMPLES = 1600;
export const SAMPLE_RATE_HZ = 16_000;
export const FRAMES_PER_SECOND = 10;
const BYTES_PER_SAMPLE = 4;

/** Cuts chunks of any length into the frames of the protocol: 100 ms of 32-bit floats, little-endian. */
export class Framer {
  private readonly frameSamples: number;
  private frame: DataView<ArrayBuffer>;
  private filled = 0;

  constructor(sampleRateHz = SAMPLE_RATE_HZ) {
    this.frameSamples = sampleRateHz / FRAMES_PER_SECOND;
    this.frame = this.empty();
  }

  /** Yields the frames that these samples complete. */
  *push(samples: Float32Array): Generator<Uint8Array<ArrayBuffer>> {
    for (const sample of samples) {
      this.frame.setFloat32(BYTES_PER_SAMPLE * this.filled++, sample, true);
      if (this.filled === this.frameSamples) yield this.take();
    }
  }

  /** Returns the incomplete frame, padded with silence; undefined if there is none. */
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
