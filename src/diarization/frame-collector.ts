import { calibrate, decisionProbability } from './confidence.ts';
import type { Diarization, ScoredTurn, SpeakerTurn } from './diarization.ts';
import { ExclusiveSpeaker } from './exclusive-speaker.ts';
import { ExclusiveTurns } from './exclusive-turns.ts';
import type { FinishedFrame } from './overlap-add.ts';
import type { Reconstruction, ReconstructionContext } from './reconstruct.ts';
import { toMilliseconds } from './rounding.ts';
import { FrameTrackWriter } from './tracks.ts';
import { type FrameTimes, type FrameTurn, TurnBuilder, turnSeconds } from './turns.ts';
import { CROSSTALK, SPEECH, SpeakerViews } from './window-frames.ts';

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
    private readonly context: ReconstructionContext,
    totalFrames: number,
  ) {
    const { facts, settings, clusters, totalSamples } = context;
    const secondsPerFrame = facts.frameShiftSamples / 16000;
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

  // Kept as fields: made anew, they would cost more than all else that is done for a frame.
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

  /** undefined where nothing is left of the turn inside the recording. */
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

/**
 * Mean probability, 0…100, that each cluster is active over a turn: a byte each, since a day has tens of thousands of
 * turns.
 */
class TurnConfidences {
  #bytes = new Uint8Array(0);
  #rows = 0;

  constructor(private readonly clusters: number) {}

  /** @returns number of the row, for `of` */
  add(before: Float64Array, after: Float64Array, frames: number): number {
    const at = this.#rows * this.clusters;
    if (at + this.clusters > this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#bytes.length + 64 * this.clusters);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    for (let cluster = 0; cluster < this.clusters; cluster++) {
      this.#bytes[at + cluster] = Math.round((100 * (after[cluster] - before[cluster])) / frames);
    }
    return this.#rows++;
  }

  of(row: number, clusters: readonly number[]): number[] {
    return clusters.map((cluster) => this.#bytes[row * this.clusters + cluster]);
  }
}
