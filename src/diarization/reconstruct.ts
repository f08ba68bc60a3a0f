import { release } from '../audio/memory.ts';
import { type Assignment, assignSpeakers, type ClusterModel } from './clustering/cluster.ts';
import { FrameCollector, type FrameContext, type Reconstruction, releaseTracks } from './frame-collector.ts';
import { type LocalSpeakers, rowsBetween } from './local-speakers.ts';
import { FIRST_SPEAKER, OverlapAdd, SpeakerViews, WindowReader } from './overlap-add.ts';
import { type Parts, readAhead, type ShardPart } from './part.ts';
import { type Claims, claimsOf, hearingOf, Resegmenter } from './resegmentation.ts';
import { buildPowerset } from './segmenter.ts';
import { firstFrame, type Subsegments } from './windows.ts';

/** A part with the speakers that its local speakers were assigned to. */
export interface AssignedPart {
  readonly frames: Pick<ShardPart, 'firstWindow' | 'windowCount' | 'probabilities'>;
  readonly speakers: LocalSpeakers;
  readonly assignment: Assignment;
  readonly subsegments?: Subsegments;
}

interface ReconstructionContext extends FrameContext {
  /** [clusters] factor on the activations of each */
  readonly boost: Float32Array;
  /** The speakers that were found, for the subsegments' say; without it they have none. */
  readonly model?: ClusterModel;
  /** Subsegments that are a speaker's whatever the votes say. */
  readonly claims?: Claims;
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

/** A search whose steps may do harm too. */
interface Rounds<Settings, Result> {
  /** Score that is enough. */
  readonly wanted: number;
  readonly maxRounds: number;
  readonly run: (settings: Settings) => Promise<Result>;
  readonly scoreOf: (result: Result) => number;
  /** Settings of the next round; those of this one stay as they are. @param round 0 for the first */
  readonly next: (settings: Settings, result: Result, round: number) => Promise<Settings>;
  /** Called with every result but the one that is returned, once it is of no use any more. */
  readonly drop: (result: Result) => void;
}

/**
 * Runs with ever other settings until the score is enough. Where it never is, the round counts that had the highest score, the last of several; it is
 * run once more where it was not the last, since a result may rest on what only the last run has put down.
 */
export async function bestRound<Settings, Result>(
  first: Settings,
  { wanted, maxRounds, run, scoreOf, next, drop }: Rounds<Settings, Result>,
): Promise<Result> {
  let settings = first;
  let best = { settings, score: Number.NEGATIVE_INFINITY };
  for (let round = 0; ; round++) {
    const result = await run(settings);
    const score = scoreOf(result);
    if (score >= wanted) return result;
    if (score >= best.score) best = { settings, score };
    const isLast = round + 1 === maxRounds;
    if (isLast && best.settings === settings) return result;
    if (!isLast) settings = await next(settings, result, round);
    drop(result);
    if (isLast) return run(best.settings);
  }
}

/** Tries to give every wanted speaker a turn by more weight… */
const BOOST_ROUNDS = 3;
/** …and then by a subsegment each, which may have been the only one of somebody else, who then needs another. */
const CLAIM_ROUNDS = 4;
const BOOST = 4;

/**
 * Windows, times the speakers, that some 25 ms of work are: with few of them a whole part, a sixth of one with a
 * hundred.
 */
const WORK_BETWEEN_PAUSES = 2000;

/** What a run over a recording costs: its windows, each so much by itself and 1 for every speaker. */
const COST_OF_WINDOW = 66;

/**
 * What all runs over a recording may cost. A day with a hundred speakers is 5.7 million a run, about 70 s of CPU time,
 * and a message has 300 s.
 */
const MAX_COST = 16_000_000;

/**
 * Reconstructs; a cluster that is outvoted everywhere although it is wanted is given more weight and another try, and
 * where that does not help a subsegment of its own. Either may cost somebody else the only turn: where not all are
 * heard in the end, the round counts in which most were.
 *
 * @param fewest speakers to be heard, at least, as far as the model has as many
 */
export async function reconstructWanted(
  parts: Parts,
  fewest: number,
  model: ClusterModel,
  pause: () => Promise<void>,
  context: Omit<ReconstructionContext, 'clusters' | 'boost' | 'model'>,
  maxCost = MAX_COST,
): Promise<Reconstruction> {
  const { clusters } = model;
  const cost = (context.totalSamples / context.facts.stepSamples) * (COST_OF_WINDOW + clusters);
  // The best of several rounds may have to be run once more.
  const maxRounds = Math.max(1, Math.min(1 + BOOST_ROUNDS + CLAIM_ROUNDS, Math.floor(maxCost / cost) - 1));
  // Who is outvoted by far only a claim helps: where there are few rounds, one is left for it.
  const boostRounds = Math.min(BOOST_ROUNDS, maxRounds - 2);
  const feed = async (take: (part: AssignedPart) => Promise<void>) => {
    for await (const part of readAhead(parts.count, parts.readPart)) {
      for (const stretch of stretchesOf(part, Math.ceil(WORK_BETWEEN_PAUSES / clusters))) {
        await take({ ...stretch, assignment: assignSpeakers(model, stretch.speakers) });
        await pause();
      }
      release(part.speakers.embeddings, part.subsegments.embeddings, part.probabilities);
    }
  };
  const first: Emphasis = { boost: new Float32Array(clusters).fill(1), claims: new Map() };
  return bestRound(first, {
    wanted: Math.min(fewest, clusters),
    maxRounds,
    run: (emphasis) => reconstruct(feed, { ...context, ...emphasis, clusters, model }),
    drop: ({ diarization }) => releaseTracks(diarization.tracks),
    scoreOf: ({ diarization }) => diarization.speakers,
    async next({ boost, claims }, { diarization, clusterOf }, round) {
      const heard = new Set(clusterOf);
      if (round < boostRounds) {
        return { boost: boost.map((factor, cluster) => (heard.has(cluster) ? factor : BOOST * factor)), claims };
      }
      const unheard = Array.from({ length: clusters }, (_, cluster) => cluster).filter(
        (cluster) => !heard.has(cluster),
      );
      const isHeard = hearingOf(diarization.tracks, context.settings.reconstruction);
      return { boost, claims: await claimsOf(parts, model, unheard, claims, isHeard, pause) };
    },
  });
}

/**
 * So many windows of a part at a time: between two of them others get a turn. All of its subsegments come with the
 * first.
 */
function* stretchesOf(part: ShardPart, windows: number): Generator<Omit<AssignedPart, 'assignment'>> {
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

/** What helps speakers who are outvoted everywhere. */
type Emphasis = Required<Pick<ReconstructionContext, 'boost' | 'claims'>>;
