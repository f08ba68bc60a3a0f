import type { Claims } from './claims.ts';
import type { Assignment, ClusterModel } from './clustering/types.ts';
import type { Diarization } from './diarization.ts';
import { FrameCollector } from './frame-collector.ts';
import type { LocalSpeakers } from './local-speakers.ts';
import { OverlapAdd } from './overlap-add.ts';
import type { DiarizationSettings } from './parameters.ts';
import type { ModelFacts, ShardPart } from './part.ts';
import { buildPowerset } from './powerset.ts';
import { Resegmenter } from './resegmentation.ts';
import type { Subsegments } from './subsegments.ts';
import type { TrackSpill } from './tracks.ts';
import { FIRST_SPEAKER, SpeakerViews, WindowReader } from './window-frames.ts';
import { firstFrame } from './windows.ts';

/** A part with the speakers that its local speakers were assigned to. */
export interface AssignedPart {
  readonly frames: Pick<ShardPart, 'firstWindow' | 'windowCount' | 'probabilities'>;
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
  /** Where the recording ends at its own rate, up to a sample at 16 kHz earlier; no turn ends later. */
  readonly durationSeconds: number;
  /** Whether to keep the frame-wise probability of each speaker. */
  readonly speakerTracks: boolean;
  readonly trackSpill?: TrackSpill;
  /** The speakers that were found, for the subsegments' say; without it they have none. */
  readonly model?: ClusterModel;
  /** Subsegments that are a speaker's whatever the votes say. */
  readonly claims?: Claims;
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
      context.claims,
    );
  const views = new SpeakerViews();
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
          resegmenter.blend(frame, expected, activations, views.of(tracks));
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
      const local = speakers.locals[row];
      clusterOf[local] = assignment.clusterOf[row];
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
