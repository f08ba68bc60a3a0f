import { release } from '../audio/memory.ts';
import type { FrameTracks, SpeakerTrack } from './diarization.ts';
import type { FrameTimes } from './turns.ts';

const RESOLUTION_SECONDS = 0.02;
const RESOLUTION_SAMPLES = 320;
/** Speakers' tracks up to this size stay in memory; ten speakers fill it in two and a half hours. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/** A place for the speakers' tracks of long recordings: blocks by number. Writing one twice leaves the second. */
export interface TrackSpill {
  /** @param bytes to be copied or stored before the promise resolves: they are given back then */
  write(block: number, bytes: Uint8Array): Promise<void>;
  /** @returns bytes that are the caller's, who may detach their buffer */
  read(block: number, offset: number, length: number): Promise<Uint8Array>;
}

/** Carries values from the model's frames over to frames of 20 ms: each gets the value of the frame that covers its centre. */
export class FrameTrackWriter {
  readonly #confidence: Uint8Array;
  readonly #speech: Uint8Array;
  readonly #crosstalk: Uint8Array;
  readonly #blockFrames: number;
  readonly #spill: TrackSpill | undefined;
  /** [clusters, blockFrames] */
  #block: Uint8Array;
  #blockStart = 0;
  #full: { readonly number: number; readonly bytes: Uint8Array }[] = [];
  #next = 0;

  constructor(
    private readonly times: FrameTimes,
    private readonly totalFrames: number,
    /** Clusters whose probabilities are kept; 0 for none. */
    private readonly clusters: number,
    /** Where what does not fit goes; without it everything stays in memory. */
    spill?: TrackSpill,
  ) {
    const count = Math.ceil(times.totalSamples / RESOLUTION_SAMPLES);
    this.#confidence = new Uint8Array(count);
    this.#speech = new Uint8Array(count);
    this.#crosstalk = new Uint8Array(count);
    const fits = count * clusters <= BLOCK_BYTES;
    this.#spill = fits ? undefined : spill;
    this.#blockFrames = this.#spill === undefined ? count : Math.max(1, Math.floor(BLOCK_BYTES / clusters));
    this.#block = new Uint8Array(clusters * this.#blockFrames);
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
      if (this.clusters === 0) continue;
      if (this.#next - this.#blockStart === this.#blockFrames) this.#nextBlock();
      const at = this.#next - this.#blockStart;
      for (let cluster = 0; cluster < this.clusters; cluster++) {
        this.#block[cluster * this.#blockFrames + at] = toByte(speakers[cluster]);
      }
    }
  }

  /** Puts full blocks down. To be called after every few minutes of audio: until then they wait in memory. */
  async flush(): Promise<void> {
    for (const { number, bytes } of this.#full) {
      await this.#spill!.write(number, bytes);
      release(bytes);
    }
    this.#full = [];
  }

  /** @param clusters the clusters that became speakers, in the order of their labels */
  async finish(clusters: readonly number[]): Promise<FrameTracks> {
    if (this.#spill !== undefined) {
      this.#nextBlock();
      await this.flush();
    }
    return {
      resolutionSeconds: RESOLUTION_SECONDS,
      confidence: this.#confidence,
      speech: this.#speech,
      crosstalk: this.#crosstalk,
      speakers: this.clusters === 0 ? [] : clusters.map((cluster) => this.#track(cluster)),
    };
  }

  #nextBlock(): void {
    this.#full.push({ number: this.#blockStart / this.#blockFrames, bytes: this.#block });
    this.#block = new Uint8Array(this.clusters * this.#blockFrames);
    this.#blockStart += this.#blockFrames;
  }

  #track(cluster: number): SpeakerTrack {
    const from = cluster * this.#blockFrames;
    const spill = this.#spill;
    if (spill === undefined) return this.#block.subarray(from, from + this.#blockFrames);
    const [blockFrames, count] = [this.#blockFrames, this.#confidence.length];
    return {
      async *blocks() {
        for (let start = 0; start < count; start += blockFrames) {
          yield spill.read(start / blockFrames, from, Math.min(blockFrames, count - start));
        }
      },
    };
  }
}

/** Gives the memory of tracks back that nobody reads any more. */
export function releaseTracks({ confidence, speech, crosstalk, speakers }: FrameTracks): void {
  release(confidence, speech, crosstalk);
  // All speakers' tracks lie in one buffer.
  for (const track of speakers) {
    if (track instanceof Uint8Array && track.length > 0) release(new Uint8Array(track.buffer));
  }
}

function toByte(probability: number): number {
  return Math.round(255 * Math.min(1, Math.max(0, probability)));
}
