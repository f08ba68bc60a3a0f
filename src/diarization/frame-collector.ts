import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { grown, release } from '../audio/memory.ts';
import type { Diarization, FrameTracks, ScoredTurn, SpeakerTrack, SpeakerTurn } from './diarization.ts';
import { toMilliseconds } from './numerics.ts';
import { CROSSTALK, type FinishedFrame, SPEECH, SpeakerViews } from './overlap-add.ts';
import type { ConfidenceParameters, DiarizationSettings } from './parameters.ts';
import type { ModelFacts } from './part.ts';
import {
  ExclusiveSpeaker,
  ExclusiveTurns,
  type FrameTimes,
  type FrameTurn,
  TurnBuilder,
  turnSeconds,
} from './turns.ts';

/** Input from which turns and tracks are built. */
export interface FrameContext {
  readonly facts: ModelFacts;
  readonly settings: DiarizationSettings;
  readonly clusters: number;
  readonly totalSamples: number;
  /** End of the recording at its own rate, up to one 16 kHz sample earlier; no turn ends later. */
  readonly durationSeconds: number;
  /** Whether to keep the frame-wise probability of each speaker. */
  readonly speakerTracks: boolean;
  readonly trackSpill?: TrackSpill;
}

export interface Reconstruction {
  readonly diarization: Diarization;
  /** [speakers] cluster of each speaker; clusters without a turn are missing */
  readonly clusterOf: readonly number[];
}

/** Builds turns and tracks from finished frames. */
export class FrameCollector {
  readonly #turns: TurnBuilder<Float64Array, number>;
  readonly #exclusive: ExclusiveTurns;
  readonly #speaker: ExclusiveSpeaker;
  readonly #confidences: TurnConfidences;
  readonly #tracks: FrameTrackWriter;
  readonly #sums: Float64Array;
  readonly #isActive: Uint8Array;
  readonly #times: FrameTimes;
  readonly #views = new SpeakerViews();

  constructor(
    private readonly context: FrameContext,
    totalFrames: number,
  ) {
    const { facts, settings, clusters, totalSamples } = context;
    const secondsPerFrame = facts.frameShiftSamples / SAMPLE_RATE_HZ;
    const { reconstruction } = settings;
    const framesOf = (seconds: number) => Math.floor(seconds / secondsPerFrame);
    const minFrames = Math.ceil(reconstruction.minDurationOnSeconds / secondsPerFrame);
    const maxPauseFrames = framesOf(reconstruction.minDurationOffSeconds);
    this.#speaker = new ExclusiveSpeaker(minFrames);
    this.#confidences = new TurnConfidences(clusters);
    this.#turns = new TurnBuilder(maxPauseFrames, minFrames, (before, after, frames) =>
      this.#confidences.add(before, after, frames),
    );
    this.#exclusive = new ExclusiveTurns(maxPauseFrames, minFrames);
    this.#sums = new Float64Array(clusters);
    this.#isActive = new Uint8Array(clusters);
    this.#times = {
      shiftSamples: facts.frameShiftSamples,
      // A boundary lies halfway between the centres of two frames.
      offsetSamples: (facts.frameSizeSamples - facts.frameShiftSamples) / 2,
      totalSamples,
    };
    this.#tracks = new FrameTrackWriter(
      this.#times,
      totalFrames,
      context.speakerTracks ? clusters : 0,
      context.trackSpill,
    );
  }

  // Fields, because allocating these functions for every frame costs more than all other work on it.
  readonly #snapshot = () => this.#sums.slice();
  readonly #turnStart = (cluster: number) => this.#turns.startOf(cluster);

  take({ frame, active, tracks }: FinishedFrame): void {
    this.#turns.push(frame, active, this.#snapshot);
    this.#exclusive.push(frame, this.#speaker.choose(active), this.#turnStart);
    const speakers = this.#views.of(tracks);
    for (let cluster = 0; cluster < speakers.length; cluster++) this.#sums[cluster] += Math.min(1, speakers[cluster]);
    this.#isActive.fill(0);
    for (const cluster of active) this.#isActive[cluster] = 1;
    const raw = decisionProbability(speakers, this.#isActive);
    const confidence = calibrate(raw, this.context.settings.confidence);
    this.#tracks.write(frame, confidence, tracks[SPEECH], tracks[CROSSTALK], speakers);
  }

  flush(): Promise<void> {
    return this.#tracks.flush();
  }

  async finish(): Promise<Reconstruction> {
    const turns = this.#turns.finish(this.#snapshot);
    const speakerOf = new Map<number, number>();
    const scored: ScoredTurn[] = [];
    for (const turn of turns) {
      const times = this.#seconds(turn);
      if (times === undefined) continue;
      if (!speakerOf.has(turn.cluster)) speakerOf.set(turn.cluster, speakerOf.size);
      scored.push({ speaker: speakerOf.get(turn.cluster)!, ...times, confidence: [] });
    }
    const clusterOrder = [...speakerOf.keys()];
    let position = 0;
    for (const turn of turns) {
      if (this.#seconds(turn) === undefined) continue;
      scored[position] = { ...scored[position], confidence: this.#confidences.of(turn.summary, clusterOrder) };
      position++;
    }
    const exclusiveTurns: SpeakerTurn[] = [];
    for (const turn of this.#exclusive.finish()) {
      const times = this.#seconds(turn);
      const speaker = speakerOf.get(turn.cluster);
      if (times !== undefined && speaker !== undefined) exclusiveTurns.push({ speaker, ...times });
    }
    const diarization: Diarization = {
      durationSeconds: this.context.durationSeconds,
      speakers: clusterOrder.length,
      turns: scored.sort(byStart),
      exclusiveTurns: exclusiveTurns.sort(byStart),
      tracks: await this.#tracks.finish(clusterOrder),
    };
    return { diarization, clusterOf: clusterOrder };
  }

  /** Times in milliseconds; undefined if no part of the turn lies inside the recording. */
  #seconds(turn: FrameTurn<unknown>): { startSeconds: number; endSeconds: number } | undefined {
    const { startSeconds, endSeconds } = turnSeconds(turn, this.#times);
    const start = toMilliseconds(startSeconds);
    // Rounding must not push the end past the recording.
    const end = Math.min(toMilliseconds(endSeconds), Math.floor(this.context.durationSeconds * 1000) / 1000);
    return start < end ? { startSeconds: start, endSeconds: end } : undefined;
  }
}

function byStart(a: SpeakerTurn, b: SpeakerTurn): number {
  return a.startSeconds - b.startSeconds || a.speaker - b.speaker;
}

/** Initial capacity in turns. */
const INITIAL_ROWS = 64;

/**
 * Mean probability, 0…100, that each cluster is active over a turn; bytes, because a day has tens of thousands of
 * turns.
 */
class TurnConfidences {
  #bytes: Uint8Array;
  #rows = 0;

  constructor(private readonly clusters: number) {
    this.#bytes = new Uint8Array(INITIAL_ROWS * clusters);
  }

  /** @returns number of the row, for `of` */
  add(before: Float64Array, after: Float64Array, frames: number): number {
    const at = this.#rows * this.clusters;
    this.#bytes = grown(this.#bytes, at, at + this.clusters);
    for (let cluster = 0; cluster < this.clusters; cluster++) {
      this.#bytes[at + cluster] = Math.round((100 * (after[cluster] - before[cluster])) / frames);
    }
    return this.#rows++;
  }

  of(row: number, clusters: readonly number[]): number[] {
    return clusters.map((cluster) => this.#bytes[row * this.clusters + cluster]);
  }
}

/** Probabilities nearer to 0 or 1 than this are clamped. */
const MARGIN = 1e-4;

/**
 * Raw probability that the decision about a frame is correct, if the speakers are independent: the product over all
 * speakers of the probability of each one's decided state, active or silent.
 *
 * @param probabilities [speakers] that each is active in the frame
 * @param active [speakers] the decision
 */
export function decisionProbability(probabilities: ArrayLike<number>, active: ArrayLike<number>): number {
  let product = 1;
  for (let speaker = 0; speaker < probabilities.length; speaker++) {
    const probability = Math.min(1, Math.max(0, probabilities[speaker]));
    product *= active[speaker] !== 0 ? probability : 1 - probability;
  }
  return product;
}

/** Raw probability → calibrated probability: `sigmoid(slope * logit(raw) + offset)`. */
export function calibrate(raw: number, parameters: ConfidenceParameters): number {
  const clipped = Math.min(1 - MARGIN, Math.max(MARGIN, raw));
  const logOdds = Math.log(clipped / (1 - clipped));
  return 1 / (1 + Math.exp(-(parameters.slope * logOdds + parameters.offset)));
}

const RESOLUTION_SECONDS = 0.02;
const RESOLUTION_SAMPLES = 320;
/** Speakers' tracks up to this size stay in memory: 10 speakers for 2.3 hours. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/** Storage for the speakers' tracks of long recordings: numbered blocks. A second write of a block replaces it. */
export interface TrackSpill {
  /** @param bytes released when the promise resolves: they must be copied or stored by then */
  write(block: number, bytes: Uint8Array): Promise<void>;
  /** @returns bytes that the caller owns and may detach */
  read(block: number, offset: number, length: number): Promise<Uint8Array>;
}

/**
 * Resamples values from the model's frames to frames of 20 ms: each gets the value of the frame that covers its centre.
 */
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
    /** Storage for tracks above `BLOCK_BYTES`; without it all stay in memory. */
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

  /** Writes full blocks to the storage. Must be called every few minutes of audio: the blocks wait in memory. */
  async flush(): Promise<void> {
    for (const { number, bytes } of this.#full) {
      await this.#spill!.write(number, bytes);
      release(bytes);
    }
    this.#full = [];
  }

  /** @param clusters cluster of each speaker, in the order of the labels */
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

/** Frees the memory of tracks after their last reader. */
export function releaseTracks({ confidence, speech, crosstalk, speakers }: FrameTracks): void {
  release(confidence, speech, crosstalk);
  // All speakers' tracks share one buffer.
  for (const track of speakers) {
    if (track instanceof Uint8Array && track.length > 0) release(new Uint8Array(track.buffer));
  }
}

function toByte(probability: number): number {
  return Math.round(255 * Math.min(1, Math.max(0, probability)));
}
