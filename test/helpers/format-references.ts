/** Decoding of a file of `test/fixtures/formats` by native ffmpeg, mono at the rate of the file. */
export interface FormatReference {
  readonly file: string;
  readonly rateHz: number;
  readonly channels: number;
  readonly totalSamples: number;
  /** Root mean square of every tenth of the recording. */
  readonly tenths: readonly number[];
  /** Number of the first sample of `window`. */
  readonly windowStart: number;
  /** Samples, float32 little endian, base64. */
  readonly window: string;
}

export const TENTHS = 10;
export const WINDOW_SAMPLES = 600;

/** Root mean square of every tenth. */
export function tenthsOf(samples: Float32Array): number[] {
  const length = Math.floor(samples.length / TENTHS);
  return Array.from({ length: TENTHS }, (_, i) => {
    const part = samples.subarray(i * length, (i + 1) * length);
    return Math.sqrt(part.reduce((sum, value) => sum + value * value, 0) / Math.max(1, length));
  });
}

/** The samples of a reference's window. */
export function windowOf({ window }: FormatReference): Float32Array {
  const bytes = Buffer.from(window, 'base64');
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}
