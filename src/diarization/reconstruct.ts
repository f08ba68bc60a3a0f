import type { Assignment, ClusterModel } from './clustering/strategy.ts';
import { calibrate, decisionProbability } from './confidence.ts';
import type { Diarization, ScoredTurn, SpeakerTurn } from './diarization.ts';
import type { LocalSpeakers } from './local-speakers.ts';
import { type FinishedFrame, OverlapAdd } from './overlap-add.ts';
import type { DiarizationSettings } from './parameters.ts';
import type { FramesSection, ModelFacts } from './part.ts';
import { buildPowerset } from './powerset.ts';
import { Resegmenter } from './resegmentation.ts';
import { toMilliseconds } from './rounding.ts';
import type { Subsegments } from './subsegments.ts';
import { FrameTrackWriter, type TrackSpill } from './tracks.ts';
import { type FrameTimes, type FrameTurn, TurnBuilder, turnSeconds } from './turns.ts';
import { CROSSTALK, FIRST_SPEAKER, SPEECH, WindowReader } from './window-frames.ts';
import { firstFrame } from './windows.ts';

/** A part with the speakers that its local speakers were assigned to. */
export interface AssignedPart {
  readonly frames: FramesSection;
  readonly speakers: LocalSpeakers;
  readonly assignment: Assignment;
  readonly subsegments?: Subsegments;
}

export interface ReconstructionContext {
  readonly facts: ModelFacts;
  readonly settings: DiarizationSettings;
  readonly clusters: number;
  /** [clusters] factor on the activations of each */
  readonly boost: Float32Array;
  readonly totalSamples: number;
  /** Whether to keep the frame-wise probability of each speaker. */
  readonly speakerTracks: boolean;
  readonly trackSpill?: TrackSpill;
  /** The speakers that were found, for the subsegments' say; without it they have none. */
  readonly model?: ClusterModel;
}

export interface Reconstruction {
  readonly diarization: Diarization;
  readonly clusterOf: readonly number[];
}

/**
 * Turns and tracks from assigned parts.
 *
 * @param feed calls its argument with each part, in order
 * @returns `clusterOf` [speakers]: the cluster that each speaker is; those without a turn are missing
 */
export async function reconstruct(
  feed: (take: (part: AssignedPart) => Promise<void>) => Promise<void>,
  context: ReconstructionContext,
): Promise<Reconstruction> {
  const { facts, settings, clusters, totalSamples } = context;
  const totalFrames = Math.ceil(totalSamples / facts.frameShiftSamples);
  const collector = new FrameCollector(context, totalFrames);
  const resegmenter =
    context.model &&
    new Resegmenter(
      context.model,
      settings.subsegments,
      (frame) => frame * facts.frameShiftSamples + facts.frameSizeSamples / 2,
    );
  const overlapAdd = new OverlapAdd(
    {
      framesPerWindow: facts.framesPerWindow,
      clusters,
      tracks: FIRST_SPEAKER + clusters,
      totalFrames,
      weights: taper(facts.framesPerWindow, settings.reconstruction.edgeTaper),
      boost: context.boost,
      adjust:
        resegmenter &&
        ((frame, activations, expected, tracks) => {
          resegmenter.blend(frame, expected, activations, tracks.subarray(FIRST_SPEAKER));
          resegmenter.discardBefore(frame);
        }),
    },
    (frame) => collector.take(frame),
  );
  const powerset = buildPowerset(facts.maxLocalSpeakers, facts.maxSimultaneous);
  const reader = new WindowReader(powerset, facts.framesPerWindow, clusters, settings.reconstruction.countBias);
  await feed(async (part) => {
    if (part.subsegments) resegmenter?.add(part.subsegments);
    pushPart(overlapAdd, part, context, reader);
    await collector.flush();
  });
  overlapAdd.finish();
  return collector.finish();
}

function pushPart(
  overlapAdd: OverlapAdd,
  part: AssignedPart,
  context: ReconstructionContext,
  reader: WindowReader,
): void {
  const { facts, clusters } = context;
  const { frames, speakers, assignment } = part;
  const { framesPerWindow, classes } = facts;
  const grid = {
    windowSamples: facts.windowSamples,
    stepSamples: facts.stepSamples,
    totalSamples: context.totalSamples,
  };
  const frameGrid = { shiftSamples: facts.frameShiftSamples, sizeSamples: facts.frameSizeSamples, framesPerWindow };
  const perWindow = framesPerWindow * classes;
  const clusterOf = new Int32Array(facts.maxLocalSpeakers);
  const posterior = new Float32Array(facts.maxLocalSpeakers * clusters);
  let row = 0;
  for (let index = 0; index < frames.windowCount; index++) {
    const window = frames.firstWindow + index;
    clusterOf.fill(-1);
    posterior.fill(0);
    for (; row < speakers.count && speakers.windows[row] === window; row++) {
      const local = speakers.locals[row]!;
      clusterOf[local] = assignment.clusterOf[row]!;
      posterior.set(assignment.posterior.subarray(row * clusters, (row + 1) * clusters), local * clusters);
    }
    const probabilities = frames.probabilities.subarray(index * perWindow, (index + 1) * perWindow);
    overlapAdd.push(firstFrame(window, grid, frameGrid), reader.read(probabilities, { clusterOf, posterior }));
  }
}

/** Weights of a window's frames: 1 in the middle, falling linearly to `1 − strength` at the edges. */
function taper(frames: number, strength: number): Float32Array | undefined {
  if (strength === 0) return undefined;
  return Float32Array.from({ length: frames }, (_, frame) => {
    const fromCentre = Math.abs((2 * frame + 1) / frames - 1);
    return 1 - strength * fromCentre;
  });
}

/** Builds turns and tracks from finished frames. */
class FrameCollector {
  readonly #turns: TurnBuilder<Float64Array, number>;
  readonly #exclusive: TurnBuilder<undefined, undefined>;
  readonly #confidences: TurnConfidences;
  readonly #tracks: FrameTrackWriter;
  readonly #sums: Float64Array;
  readonly #isActive: Uint8Array;
  readonly #times: FrameTimes;

  constructor(
    private readonly context: ReconstructionContext,
    totalFrames: number,
  ) {
    const { facts, settings, clusters, totalSamples } = context;
    const secondsPerFrame = facts.frameShiftSamples / 16000;
    const { minDurationOffSeconds, minDurationOnSeconds } = settings.reconstruction;
    const maxPause = Math.floor(minDurationOffSeconds / secondsPerFrame);
    const minFrames = Math.ceil(minDurationOnSeconds / secondsPerFrame);
    this.#confidences = new TurnConfidences(clusters);
    this.#turns = new TurnBuilder(maxPause, minFrames, (before, after, frames) =>
      this.#confidences.add(before, after, frames),
    );
    this.#exclusive = new TurnBuilder(maxPause, minFrames, () => undefined, true);
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
  readonly #nothing = () => undefined;
  readonly #first: number[] = [];

  take({ frame, active, tracks }: FinishedFrame): void {
    this.#turns.push(frame, active, this.#snapshot);
    this.#first.length = 0;
    if (active.length > 0) this.#first.push(active[0]!);
    this.#exclusive.push(frame, this.#first, this.#nothing);
    const speakers = tracks.subarray(FIRST_SPEAKER);
    for (let cluster = 0; cluster < speakers.length; cluster++) this.#sums[cluster]! += Math.min(1, speakers[cluster]!);
    this.#isActive.fill(0);
    for (const cluster of active) this.#isActive[cluster] = 1;
    const raw = decisionProbability(speakers, this.#isActive);
    const confidence = calibrate(raw, this.context.settings.confidence);
    this.#tracks.write(frame, confidence, tracks[SPEECH]!, tracks[CROSSTALK]!, speakers);
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
      scored[position] = { ...scored[position]!, confidence: this.#confidences.of(turn.summary, clusterOrder) };
      position++;
    }
    const exclusiveTurns: SpeakerTurn[] = [];
    for (const turn of this.#exclusive.finish(() => undefined)) {
      const times = this.#seconds(turn);
      const speaker = speakerOf.get(turn.cluster);
      if (times !== undefined && speaker !== undefined) exclusiveTurns.push({ speaker, ...times });
    }
    const diarization: Diarization = {
      durationSeconds: this.context.totalSamples / 16000,
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
    const end = Math.min(toMilliseconds(endSeconds), Math.floor((this.context.totalSamples / 16000) * 1000) / 1000);
    return start < end ? { startSeconds: start, endSeconds: end } : undefined;
  }
}

function byStart(a: SpeakerTurn, b: SpeakerTurn): number {
  return a.startSeconds - b.startSeconds || a.speaker - b.speaker;
}

/** Mean probability, 0…100, that each cluster is active over a turn: a byte each, since a day has tens of thousands of turns. */
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
      this.#bytes[at + cluster] = Math.round((100 * (after[cluster]! - before[cluster]!)) / frames);
    }
    return this.#rows++;
  }

  of(row: number, clusters: readonly number[]): number[] {
    return clusters.map((cluster) => this.#bytes[row * this.clusters + cluster]!);
  }
}
