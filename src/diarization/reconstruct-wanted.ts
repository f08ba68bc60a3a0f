import { release } from '../audio/memory.ts';
import { bestRound } from './best-round.ts';
import { claimsOf, hearingOf } from './claims.ts';
import { assignSpeakers } from './clustering/cluster.ts';
import type { ClusterModel } from './clustering/types.ts';
import { rowsBetween } from './local-speakers.ts';
import type { ShardPart } from './part.ts';
import { type Parts, readAhead } from './parts.ts';
import { type AssignedPart, type Reconstruction, type ReconstructionContext, reconstruct } from './reconstruct.ts';
import { releaseTracks } from './tracks.ts';

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
