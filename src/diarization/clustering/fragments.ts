import { normalise } from '../vectors.ts';
import { itemSimilarityOf, joiningWeightOf, lengthOf, type SpeakerSum, sumOf } from './alike.ts';
import type { ClusterModel, SpeakerBounds } from './strategy.ts';

/** When two speakers that were found are one person. Similarities are the mean cosine of their embeddings, each with each. */
export interface FragmentParameters {
  /** Pauses of up to so much are no ends of turns, when the changes are counted. */
  readonly maxPauseSeconds: number;
  /** From so much on, if one speaker were left… */
  readonly sameSimilarity: number;
  /** …and so much more for every factor of e in the number of speakers: n of them make some n² pairs, and hardly one is the same person. */
  readonly sameSimilarityGrowth: number;
  /** Or from so much on, less what the changes from one of them to the other without a pause are worth… */
  readonly changeSimilarity: number;
  /** …which is the logarithm of their number by the second of speech of whoever talks less, times this. */
  readonly changeWeight: number;
  /** Changes, and the seconds that they took, which are counted before any is heard: what a short voice is expected to have. */
  readonly priorChanges: number;
  readonly priorSeconds: number;
  /** However often that is, from no less than this: people who know each other answer without a pause, too. */
  readonly leastSimilarity: number;
  /** Beyond so much speech of whoever talks less both are stricter, among more than two: what a mood or a move sets apart is seldom minutes long… */
  readonly fragmentSeconds: number;
  /** …by so much for every factor of e in that speech, and for every factor of e by which there are more. */
  readonly longSpeechGrowth: number;
  /** Of recordings with more speech than this every second counts for less, as it does for VBx (`maxEvidenceSeconds`): what it parts takes longer there. */
  readonly evidenceSeconds: number;
  /** Where more are left than are wanted: what joining two costs who are just alike enough, by the logarithm of their speech. */
  readonly joiningCost: number;
}

/** A turn of a speaker that was found. */
export interface ClusterTurn {
  readonly cluster: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Between two turns without a pause, overlapping or apart by a few frames. */
const MAX_OVERLAP_SECONDS = 0.1;
const MAX_PAUSE_SECONDS = 0.15;
/** Distance of two who are more alike than they would have to be. */
const LEAST_DISTANCE = 0.01;

/**
 * Joins the speakers that are fragments of one person. Their voices alone do not tell, because what sets them apart, a move or a mood, is in the
 * voices; that the talk goes over from one to the other in the middle of what somebody says does. People seldom take over from each
 * other within the same tenth of a second, and fragments do so several times a minute.
 *
 * Where more than `bounds.max` are left, those are joined as well who cost the least: what they lack in similarity, times the logarithm of the
 * speech that tells them apart, as in `joinDown`.
 *
 * @param turns of all speakers, by start
 * @returns the model of those who are left, in the order in which they were; the same model where nobody is joined or VBx did not find them
 */
export function joinFragments(
  model: ClusterModel,
  turns: readonly ClusterTurn[],
  parameters: FragmentParameters,
  bounds: SpeakerBounds,
): ClusterModel {
  if (model.sums === undefined) return model;
  let people = peopleOf(model.sums, turns);
  while (people.length > Math.max(1, bounds.min)) {
    const pair =
      unheardOne(people, bounds) ??
      mostLikelyOne(people, parameters) ??
      (people.length > Math.max(1, bounds.max) ? cheapest(people, parameters) : undefined);
    if (pair === undefined) break;
    people = withJoined(people, pair);
  }
  return people.length === model.clusters ? model : modelOf(people, model, model.sums);
}

/** Somebody, as far as is known: the speakers that are taken for one person. */
interface Person {
  /** The first is the one that the others were joined to. */
  readonly clusters: readonly number[];
  readonly sum: SpeakerSum;
  /** Of all turns, overlapped ones too. */
  readonly seconds: number;
  /** [clusters of the model] changes without a pause between this person and each speaker that was found */
  readonly changes: Float64Array;
}

type Pair = readonly [Person, Person];

function peopleOf(sums: readonly SpeakerSum[], turns: readonly ClusterTurn[]): Person[] {
  const seconds = new Float64Array(sums.length);
  const changes = sums.map(() => new Float64Array(sums.length));
  turns.forEach((turn, index) => {
    seconds[turn.cluster] += turn.endSeconds - turn.startSeconds;
    const before = turns[index - 1];
    if (before === undefined || before.cluster === turn.cluster) return;
    const pause = turn.startSeconds - before.endSeconds;
    if (pause < -MAX_OVERLAP_SECONDS || pause >= MAX_PAUSE_SECONDS) return;
    changes[turn.cluster][before.cluster] += 1;
    changes[before.cluster][turn.cluster] += 1;
  });
  return sums.map((sum, cluster) => ({
    clusters: [cluster],
    sum,
    seconds: seconds[cluster],
    changes: changes[cluster],
  }));
}

/**
 * Somebody who has no turn, and who sounds the most like them, where speakers were asked for and enough of them are heard: who is not heard must not take the place of
 * one who is.
 */
function unheardOne(people: readonly Person[], { min, max }: SpeakerBounds): Pair | undefined {
  const isHeard = ({ seconds }: Person) => seconds > 0;
  const heard = people.filter(isHeard).length;
  if (heard === people.length || heard < min || (min <= 1 && people.length <= max)) return undefined;
  return least(people, (a, b) => (isHeard(a) && isHeard(b) ? undefined : -itemSimilarityOf(a.sum, b.sum)));
}

/** The two who are beyond either limit the furthest, of those who are heard at all. */
function mostLikelyOne(people: readonly Person[], parameters: FragmentParameters): Pair | undefined {
  const { sameSimilarity, sameSimilarityGrowth, leastSimilarity, longSpeechGrowth, evidenceSeconds } = parameters;
  const same = sameSimilarity + sameSimilarityGrowth * Math.log(people.length);
  const growth = longSpeechGrowth * Math.log(people.length / 2);
  const totalSeconds = people.reduce((sum, person) => sum + person.seconds, 0);
  const fragmentSeconds = parameters.fragmentSeconds * Math.max(1, totalSeconds / evidenceSeconds);
  return least(people, (a, b) => {
    const seconds = Math.min(a.seconds, b.seconds);
    if (seconds === 0) return undefined;
    const either = Math.min(same, Math.max(leastSimilarity, neededAfterChanges(a, b, parameters)));
    const needed = either + growth * Math.log(Math.max(1, seconds / fragmentSeconds));
    const missing = needed - itemSimilarityOf(a.sum, b.sum);
    return missing <= 0 ? missing : undefined;
  });
}

function cheapest(people: readonly Person[], parameters: FragmentParameters): Pair | undefined {
  return least(people, (a, b) => {
    const missing = neededAfterChanges(a, b, parameters) - itemSimilarityOf(a.sum, b.sum);
    return Math.max(LEAST_DISTANCE, parameters.joiningCost + missing) * joiningWeightOf(a.sum, b.sum);
  });
}

/** The pair of the least value, the first of equals. @param costOf undefined for a pair that is out of the question */
function least(people: readonly Person[], costOf: (a: Person, b: Person) => number | undefined): Pair | undefined {
  let lowest = Number.POSITIVE_INFINITY;
  let pair: Pair | undefined;
  people.forEach((b, index) => {
    for (const a of people.slice(0, index)) {
      const value = costOf(a, b);
      if (value !== undefined && value < lowest) [lowest, pair] = [value, [a, b]];
    }
  });
  return pair;
}

/** How alike two have to be, seeing how often the talk goes over from one to the other without a pause. */
function neededAfterChanges(
  a: Person,
  b: Person,
  { changeSimilarity, changeWeight, priorChanges, priorSeconds }: FragmentParameters,
): number {
  const changes = b.clusters.reduce((sum, cluster) => sum + a.changes[cluster], 0);
  const rate = (changes + priorChanges) / (Math.min(a.seconds, b.seconds) + priorSeconds);
  return changeSimilarity - changeWeight * Math.log(rate);
}

function withJoined(people: readonly Person[], [a, b]: Pair): Person[] {
  const joined = {
    clusters: [...a.clusters, ...b.clusters],
    sum: sumOf(a.sum, b.sum),
    seconds: a.seconds + b.seconds,
    changes: a.changes.map((value, cluster) => value + b.changes[cluster]),
  };
  return people.filter((person) => person !== b).map((person) => (person === a ? joined : person));
}

/** Centroids are the means of those joined, by how much each was said and how far it goes in one direction. */
function modelOf(people: readonly Person[], model: ClusterModel, sums: readonly SpeakerSum[]): ClusterModel {
  const { dimension } = model;
  const centroids = new Float32Array(people.length * dimension);
  people.forEach(({ clusters }, person) => {
    for (const cluster of clusters) {
      const length = lengthOf(sums[cluster]);
      for (let d = 0; d < dimension; d++) {
        centroids[person * dimension + d] += length * model.centroids[cluster * dimension + d];
      }
    }
    normalise(centroids, person * dimension, dimension);
  });
  return { ...model, clusters: people.length, centroids, sums: people.map(({ sum }) => sum) };
}
