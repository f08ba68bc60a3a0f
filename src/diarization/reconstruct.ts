import { release } from '../audio/memory.ts';
import { type Assignment, assignSpeakers, type ClusterModel } from './clustering/cluster.ts';
import { FrameCollector, type FrameContext, type Reconstruction, releaseTracks } from './frame-collector.ts';
import { type LocalSpeakers, rowsBetween } from './local-speakers.ts';
import { FIRST_SPEAKER, OverlapAdd, SpeakerViews, WindowReader } from './overlap-add.ts';
import { type Parts, readAhead, type ShardPart } from './part.ts';
import { type ForcedSpeakers, forceSpeakers, Resegmenter, turnYield } from './resegmentation.ts';
import { buildPowerset } from './segmenter.ts';
import { firstFrame, type Subsegments } from './windows.ts';

/** A part with the assignment of its local speakers. */
export interface AssignedPart {
  readonly frames: Pick<ShardPart, 'firstWindow' | 'windowCount' | 'probabilities'>;
  readonly speakers: LocalSpeakers;
  readonly assignment: Assignment;
  readonly subsegments?: Subsegments;
}

interface ReconstructionContext extends FrameContext {
  /** [clusters] factor on the activations */
  readonly boost: Float32Array;
  /** Speakers that subsegments are compared with; without it there is no resegmentation. */
  readonly model?: ClusterModel;
  readonly forced?: ForcedSpeakers;
}

/**
 * Turns and tracks from assigned parts.
 *
 * @param feed calls its argument with each part, in order
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
      context.forced,
    );
  const views = new SpeakerViews();
  const overlapAdd = new OverlapAdd(
    {
      framesPerWindow: facts.framesPerWindow,
      clusters,
      tracks: FIRST_SPEAKER + clusters,
      totalFrames,
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

/** A search in which the score may fall from one round to the next. */
interface Rounds<Settings, Result> {
  readonly enoughScore: number;
  readonly maxRounds: number;
  readonly run: (settings: Settings) => Promise<Result>;
  readonly scoreOf: (result: Result) => number;
  /** Settings of the next round; must not change those of this one. @param round 0 for the first */
  readonly next: (settings: Settings, result: Result, round: number) => Promise<Settings>;
  /** Frees a result that is not returned. */
  readonly drop: (result: Result) => void;
}

/**
 * Runs with changing settings until the score is enough. If no round reaches it, the round with the highest score wins,
 * of equal ones the last. Unless it was the last round it runs again, because a result may depend on tracks that only
 * the last run has stored.
 */
export async function bestRound<Settings, Result>(
  first: Settings,
  { enoughScore, maxRounds, run, scoreOf, next, drop }: Rounds<Settings, Result>,
): Promise<Result> {
  let settings = first;
  let best = { settings, score: Number.NEGATIVE_INFINITY };
  for (let round = 0; ; round++) {
    const result = await run(settings);
    const score = scoreOf(result);
    if (score >= enoughScore) return result;
    if (score >= best.score) best = { settings, score };
    const isLast = round + 1 === maxRounds;
    if (isLast && best.settings === settings) return result;
    if (!isLast) settings = await next(settings, result, round);
    drop(result);
    if (isLast) return run(best.settings);
  }
}

/** Rounds that raise the weight of speakers without a turn. */
const BOOST_ROUNDS = 3;
/** Rounds that force a subsegment for each of them, which may take the only turn of another speaker. */
const FORCE_ROUNDS = 4;
const BOOST = 4;

/** Windows × speakers between two pauses, about 25 ms of work: a part with few speakers, a sixth of one with 100. */
const WORK_BETWEEN_PAUSES = 2000;

/** Cost of a window in a run over a recording, in addition to 1 per speaker. */
const COST_OF_WINDOW = 66;

/**
 * Maximum cost of all runs over a recording. A run over a day with 100 speakers costs 5.7 million, about 70 s of CPU
 * time; a message has 300 s.
 */
const MAX_COST = 16_000_000;

/**
 * Reconstructs with at least `minSpeakers` speakers, as far as the model has that many. A cluster that is outvoted in
 * every frame gets more weight in the next rounds, then a forced subsegment. Either may take the only turn of another
 * speaker. If no round has enough speakers, the one with the most is returned.
 */
export async function reconstructAtLeast(
  parts: Parts,
  minSpeakers: number,
  model: ClusterModel,
  pause: () => Promise<void>,
  context: Omit<ReconstructionContext, 'clusters' | 'boost' | 'model'>,
  maxCost = MAX_COST,
): Promise<Reconstruction> {
  const { clusters } = model;
  const cost = (context.totalSamples / context.facts.stepSamples) * (COST_OF_WINDOW + clusters);
  // The best of several rounds may run once more.
  const maxRounds = Math.max(1, Math.min(1 + BOOST_ROUNDS + FORCE_ROUNDS, Math.floor(maxCost / cost) - 1));
  // Weight does not help a speaker who is outvoted by far: of few rounds one is reserved for a forced subsegment.
  const boostRounds = Math.min(BOOST_ROUNDS, maxRounds - 2);
  const feed = async (take: (part: AssignedPart) => Promise<void>) => {
    for await (const part of readAhead(parts.count, parts.readPart)) {
      for (const batch of batchesOf(part, Math.ceil(WORK_BETWEEN_PAUSES / clusters))) {
        await take({ ...batch, assignment: assignSpeakers(model, batch.speakers) });
        await pause();
      }
      release(part.speakers.embeddings, part.subsegments.embeddings, part.probabilities);
    }
  };
  const first: Emphasis = { boost: new Float32Array(clusters).fill(1), forced: new Map() };
  return bestRound(first, {
    enoughScore: Math.min(minSpeakers, clusters),
    maxRounds,
    run: (emphasis) => reconstruct(feed, { ...context, ...emphasis, clusters, model }),
    drop: ({ diarization }) => releaseTracks(diarization.tracks),
    scoreOf: ({ diarization }) => diarization.speakers,
    async next({ boost, forced }, { diarization, clusterOf }, round) {
      const present = new Set(clusterOf);
      if (round < boostRounds) {
        return { boost: boost.map((factor, cluster) => (present.has(cluster) ? factor : BOOST * factor)), forced };
      }
      const missing = Array.from({ length: clusters }, (_, cluster) => cluster).filter(
        (cluster) => !present.has(cluster),
      );
      const yieldsTurn = turnYield(diarization.tracks, context.settings.reconstruction);
      return { boost, forced: await forceSpeakers(parts, model, missing, forced, yieldsTurn, pause) };
    },
  });
}

/** The windows of a part in batches, between which other requests can run. The first batch has all subsegments. */
function* batchesOf(part: ShardPart, windows: number): Generator<Omit<AssignedPart, 'assignment'>> {
  const { speakers, probabilities } = part;
  const bytesPerWindow = probabilities.length / part.windowCount;
  let row = 0;
  for (let from = 0; from < part.windowCount; from += windows) {
    const to = Math.min(from + windows, part.windowCount);
    const firstRow = row;
    while (row < speakers.count && speakers.windows[row] < part.firstWindow + to) row++;
    yield {
      frames: {
        firstWindow: part.firstWindow + from,
        windowCount: to - from,
        probabilities: probabilities.subarray(from * bytesPerWindow, to * bytesPerWindow),
      },
      speakers: rowsBetween(speakers, firstRow, row),
      subsegments: from === 0 ? part.subsegments : undefined,
    };
  }
}

/** Boosts and forced subsegments of speakers who are outvoted in every frame. */
type Emphasis = Required<Pick<ReconstructionContext, 'boost' | 'forced'>>;
