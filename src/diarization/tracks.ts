import type { FrameTracks } from './diarization.ts';
import type { FrameTimes } from './turns.ts';

const RESOLUTION_SECONDS = 0.02;
const RESOLUTION_SAMPLES = 320;

/** Carries values from the model's frames over to frames of 20 ms: each gets the value of the frame that covers its centre. */
export class FrameTrackWriter {
  readonly #confidence: Uint8Array;
  readonly #speech: Uint8Array;
  readonly #crosstalk: Uint8Array;
  readonly #speakers: Uint8Array[];
  #next = 0;

  constructor(
    private readonly times: FrameTimes,
    private readonly totalFrames: number,
    /** Clusters whose probabilities are kept; 0 for none. */
    clusters: number,
  ) {
    const count = Math.ceil(times.totalSamples / RESOLUTION_SAMPLES);
    this.#confidence = new Uint8Array(count);
    this.#speech = new Uint8Array(count);
    this.#crosstalk = new Uint8Array(count);
    this.#speakers = Array.from({ length: clusters }, () => new Uint8Array(count));
  }

  /** Values of the model's next frame, 0…1. */
  write(frame: number, confidence: number, speech: number, crosstalk: number, speakers: Float32Array): void {
    const { shiftSamples, offsetSamples } = this.times;
    const isLast = frame === this.totalFrames - 1;
    const endSample = isLast ? Number.POSITIVE_INFINITY : (frame + 1) * shiftSamples + offsetSamples;
    for (; this.#next < this.#confidence.length; this.#next++) {
      if ((this.#next + 0.5) * RESOLUTION_SAMPLES >= endSample) break;
      this.#confidence[this.#next] = Math.round(100 * confidence);
      this.#speech[this.#next] = toByte(speech);
      this.#crosstalk[this.#next] = toByte(crosstalk);
      for (let cluster = 0; cluster < this.#speakers.length; cluster++) {
        this.#speakers[cluster]![this.#next] = toByte(speakers[cluster]!);
      }
    }
  }

  /** @param clusters the clusters that became speakers, in the order of their labels */
  finish(clusters: readonly number[]): FrameTracks {
    return {
      resolutionSeconds: RESOLUTION_SECONDS,
      confidence: this.#confidence,
      speech: this.#speech,
      crosstalk: this.#crosstalk,
      speakers: this.#speakers.length === 0 ? [] : clusters.map((cluster) => this.#speakers[cluster]!),
    };
  }
}

function toByte(probability: number): number {
  return Math.round(255 * Math.min(1, Math.max(0, probability)));
}
