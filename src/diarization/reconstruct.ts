import type { Assignment, ClusterModel } from './clustering/strategy.ts';
import { calibrate, decisionProbability } from './confidence.ts';
import type { Diarization, ScoredTurn, SpeakerTurn } from './diarization.ts';
import type { QuietPlaces } from './levels.ts';
import type { LocalSpeakers } from './local-speakers.ts';
import { type FinishedFrame, OverlapAdd } from './overlap-add.ts';
import type { DiarizationSettings } from './parameters.ts';
import type { FramesSection, ModelFacts } from './part.ts';
import { buildPowerset, type Powerset } from './powerset.ts';
import { Resegmenter } from './resegmentation.ts';
import { toMilliseconds } from './rounding.ts';
import type { Subsegments } from './subsegments.ts';
import { FrameTrackWriter } from './tracks.ts';
import { type FrameTimes, type FrameTurn, TurnBuilder, turnSeconds } from './turns.ts';
import { CROSSTALK, FIRST_SPEAKER, SPEECH, windowFrames } from './window-frames.ts';
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
  /** The speakers that were found, for the subsegments' say; without it they have none. */
  readonly model?: ClusterModel;
  /** Where nobody talks, whatever the segmentation says. */
  readonly quiet?: QuietPlaces;
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
  feed: (take: (part: AssignedPart) => void) => Promise<void>,
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
          resegmenter.blend(frame, expected, activations);
          resegmenter.blend(frame, expected, tracks.subarray(FIRST_SPEAKER));
          resegmenter.discardBefore(frame);
        }),
    },
    (frame) => collector.take(frame),
  );
  const powerset = buildPowerset(facts.maxLocalSpeakers, facts.maxSimultaneous);
  await feed((part) => {
    if (part.subsegments) resegmenter?.add(part.subsegments);
    pushPart(overlapAdd, part, context, powerset);
  });
  overlapAdd.finish();
  return collector.finish();
}

function pushPart(
  overlapAdd: OverlapAdd,
  part: AssignedPart,
  context: ReconstructionContext,
  powerset: Powerset,
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
  let row = 0;
  for (let index = 0; index < frames.windowCount; index++) {
    const window = frames.firstWindow + index;
    const clusterOf = new Int32Array(powerset.speakers).fill(-1);
    const posterior = new Float32Array(powerset.speakers * clusters);
    for (; row < speakers.count && speakers.windows[row] === window; row++) {
      const local = speakers.locals[row]!;
      clusterOf[local] = assignment.clusterOf[row]!;
      posterior.set(assignment.posterior.subarray(row * clusters, (row + 1) * clusters), local * clusters);
    }
    const seen = frames.probabilities.subarray(index * perWindow, (index + 1) * perWindow);
    const start = window * facts.stepSamples;
    const probabilities = context.quiet ? silenced(seen, start, context.quiet, facts) : seen;
    const { countBias } = context.settings.reconstruction;
    overlapAdd.push(
      firstFrame(window, grid, frameGrid),
      windowFrames(probabilities, powerset, { clusterOf, posterior }, clusters, countBias),
    );
  }
}

/** Probabilities with "nobody" where it is quiet; the same where that is nowhere. */
function silenced(probabilities: Uint8Array, startSample: number, quiet: QuietPlaces, facts: ModelFacts): Uint8Array {
  const { classes, framesPerWindow, frameShiftSamples, frameSizeSamples } = facts;
  let result = probabilities;
  for (let frame = 0; frame < framesPerWindow; frame++) {
    if (!quiet.has(startSample + frame * frameShiftSamples + frameSizeSamples / 2)) continue;
    if (result === probabilities) result = probabilities.slice();
    result.fill(0, frame * classes, (frame + 1) * classes);
    result[frame * classes] = 255;
  }
  return result;
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
  readonly #turns: TurnBuilder<Float64Array>;
  readonly #exclusive: TurnBuilder<undefined>;
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
    this.#turns = new TurnBuilder(maxPause, minFrames);
    this.#exclusive = new TurnBuilder(maxPause, minFrames, true);
    this.#sums = new Float64Array(clusters);
    this.#isActive = new Uint8Array(clusters);
    this.#times = {
      shiftSamples: facts.frameShiftSamples,
      // A boundary lies halfway between the centres of two frames.
      offsetSamples: (facts.frameSizeSamples - facts.frameShiftSamples) / 2,
      totalSamples,
    };
    this.#tracks = new FrameTrackWriter(this.#times, totalFrames, context.speakerTracks ? clusters : 0);
  }

  take({ frame, active, tracks }: FinishedFrame): void {
    const snapshot = () => this.#sums.slice();
    this.#turns.push(frame, active, snapshot);
    this.#exclusive.push(frame, active.slice(0, 1), () => undefined);
    const speakers = tracks.subarray(FIRST_SPEAKER);
    for (let cluster = 0; cluster < speakers.length; cluster++) this.#sums[cluster]! += Math.min(1, speakers[cluster]!);
    this.#isActive.fill(0);
    for (const cluster of active) this.#isActive[cluster] = 1;
    const raw = decisionProbability(speakers, this.#isActive);
    const confidence = calibrate(raw, this.context.settings.confidence);
    this.#tracks.write(frame, confidence, tracks[SPEECH]!, tracks[CROSSTALK]!, speakers);
  }

  finish(): Reconstruction {
    const turns = this.#turns.finish(() => this.#sums.slice());
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
      scored[position] = { ...scored[position]!, confidence: turnConfidence(turn, clusterOrder) };
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
      tracks: this.#tracks.finish(clusterOrder),
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

/** Mean probability, 0…100, that each speaker is active over the turn. */
function turnConfidence(turn: FrameTurn<Float64Array>, clusters: readonly number[]): number[] {
  const frames = turn.endFrame - turn.startFrame;
  return clusters.map((cluster) => Math.round((100 * (turn.after[cluster]! - turn.before[cluster]!)) / frames));
}
