import { release } from '../audio/memory.ts';
import { bestRound } from './best-round.ts';
import { claimsOf } from './claims.ts';
import { assignSpeakers, type ClusterModel } from './clustering/strategy.ts';
import { type Parts, readAhead } from './parts.ts';
import { type AssignedPart, type Reconstruction, type ReconstructionContext, reconstruct } from './reconstruct.ts';

/** Tries to give every wanted speaker a turn by more weight… */
const BOOST_ROUNDS = 3;
/** …and then by a subsegment each, which may have been the only one of somebody else, who then needs another. */
const CLAIM_ROUNDS = 4;
const BOOST = 4;

/**
 * What all rounds of a recording may cost. One costs its windows, each so much by itself and 1 for every speaker; a day with a hundred speakers is
 * 5.7 million, about 70 s of CPU time, and a message has 300 s for both of its reconstructions.
 */
const MAX_ROUNDS_COST = 8_000_000;
const COST_OF_WINDOW = 66;

/**
 * Reconstructs; a cluster that is outvoted everywhere although it is wanted is given more weight and another try, and where that
 * does not help a subsegment of its own. Either may cost somebody else the only turn: where not all are heard in the end, the round counts in
 * which most were.
 *
 * @param fewest speakers to be heard, at least, as far as the model has as many
 */
export async function reconstructWanted(
  parts: Parts,
  fewest: number,
  model: ClusterModel,
  pause: () => Promise<void>,
  context: Omit<ReconstructionContext, 'clusters' | 'boost' | 'model'>,
): Promise<Reconstruction> {
  const { clusters } = model;
  const feed = async (take: (part: AssignedPart) => Promise<void>) => {
    for await (const part of readAhead(parts.count, parts.readPart)) {
      const { speakers, subsegments } = part;
      await take({ frames: part, speakers, assignment: assignSpeakers(model, speakers), subsegments });
      release(speakers.embeddings, subsegments.embeddings, part.probabilities);
      await pause();
    }
  };
  const first: Emphasis = { boost: new Float32Array(clusters).fill(1), claims: new Map() };
  return bestRound(first, {
    wanted: Math.min(fewest, clusters),
    maxRounds: Math.min(1 + BOOST_ROUNDS + CLAIM_ROUNDS, affordableRounds(clusters, context)),
    run: (emphasis) => reconstruct(feed, { ...context, ...emphasis, clusters, model }),
    scoreOf: ({ diarization }) => diarization.speakers,
    async next({ boost, claims }, { clusterOf }, round) {
      const heard = new Set(clusterOf);
      if (round < BOOST_ROUNDS) {
        return { boost: boost.map((factor, cluster) => (heard.has(cluster) ? factor : BOOST * factor)), claims };
      }
      const unheard = Array.from({ length: clusters }, (_, cluster) => cluster).filter(
        (cluster) => !heard.has(cluster),
      );
      return { boost, claims: await claimsOf(parts, model, unheard, claims, pause) };
    },
  });
}

function affordableRounds(
  clusters: number,
  { totalSamples, facts }: Pick<ReconstructionContext, 'totalSamples' | 'facts'>,
): number {
  const windows = totalSamples / facts.stepSamples;
  return Math.max(1, Math.floor(MAX_ROUNDS_COST / (windows * (COST_OF_WINDOW + clusters))));
}

/** What helps speakers who are outvoted everywhere. */
type Emphasis = Required<Pick<ReconstructionContext, 'boost' | 'claims'>>;
