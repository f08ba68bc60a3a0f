import { release } from '../../audio/memory.ts';
import { concatenate, type LocalSpeakers, select } from '../local-speakers.ts';
import { SUBSEGMENT_SHIFT_SECONDS, type Subsegments } from '../subsegments.ts';
import { LEAST_WEIGHT } from './items.ts';
import type { Plda } from './plda.ts';

/** Short pieces of speech. In a long recording they are thinned: one in `every` is left. */
export type ThinnedSubsegments = Subsegments & { readonly every: number };

/** Local speakers with what clustering needs of them. */
export interface Weighted {
  readonly speakers: LocalSpeakers;
  /** [count] */
  readonly weights: Float64Array;
  /** [count] speech that each adds to the recording */
  readonly seconds: Float64Array;
}

/** What VBx works with besides the local speakers. */
export interface Evidence {
  readonly plda: Plda;
  /** The subsegments, each a window of its own. */
  readonly pieces: Weighted | undefined;
  readonly shift: Float32Array;
  /** Whether what VBx found stays apart for now. */
  readonly keepFragments: boolean;
}

/** Those with enough clean speech; where they are fewer than the speakers wanted, the cleanest, and at least one. */
export function trainingSet(
  { speakers, weights, seconds }: Weighted,
  minCleanSeconds: number,
  wanted: number,
): Weighted {
  const byQuality = Array.from({ length: speakers.count }, (_, row) => row).sort(
    (a, b) => speakers.cleanSeconds[b] - speakers.cleanSeconds[a] || a - b,
  );
  const good = byQuality.filter((row) => speakers.cleanSeconds[row] >= minCleanSeconds);
  const rows = good.length >= wanted && good.length > 0 ? good : byQuality.slice(0, Math.max(1, wanted));
  rows.sort((a, b) => a - b);
  const pick = (values: Float64Array) => Float64Array.from(rows, (row) => values[row]);
  return {
    speakers: select(speakers, rows),
    weights: pick(weights),
    seconds: pick(seconds),
  };
}

/** How the evidence is shared out between the local speakers and the subsegments. */
export interface EvidenceShares {
  /** Share of the evidence that lies in the subsegments, the rest in the local speakers, where there is little speech… */
  readonly briefSubsegmentShare: number;
  /** …up to so much… */
  readonly briefSpeechSeconds: number;
  /**
   * …and where there is much: short pieces of one person differ by what is said, which a PLDA knows little of, and the more of them there are, the
   * better they would be told apart by it. Between the two the share falls with the logarithm of the speech…
   */
  readonly longSubsegmentShare: number;
  /** …from so much on. */
  readonly longSpeechSeconds: number;
}

/** The share of the evidence that lies in the subsegments of so much speech. */
export function subsegmentShareOf(
  speechSeconds: number,
  { briefSubsegmentShare, briefSpeechSeconds, longSubsegmentShare, longSpeechSeconds }: EvidenceShares,
): number {
  const way = Math.log(speechSeconds / briefSpeechSeconds) / Math.log(longSpeechSeconds / briefSpeechSeconds);
  return briefSubsegmentShare + Math.min(1, Math.max(0, way)) * (longSubsegmentShare - briefSubsegmentShare);
}

/**
 * The local speakers and the subsegments, the evidence of the recording's seconds shared out between the two. The embeddings of `training` are
 * in what comes out, and not to be used elsewhere afterwards.
 */
export function withPieces(training: Weighted, evidence: Evidence | undefined, shares: EvidenceShares): Weighted {
  const pieces = evidence?.pieces;
  if (evidence === undefined) return training;
  // Who never talks alone is evidence of a voice all the same: with no weight at all a cluster of such would have no centroid.
  const alone = training.seconds.map((value) => Math.max(value, LEAST_WEIGHT));
  if (pieces === undefined) return { ...training, seconds: alone, weights: alone };
  const share = subsegmentShareOf(
    alone.reduce((sum, value) => sum + value, 0),
    shares,
  );
  const seconds = Float64Array.from([
    ...alone.map((value) => (1 - share) * value),
    ...pieces.seconds.map((value) => share * value),
  ]);
  const speakers = concatenate([training.speakers, pieces.speakers], training.speakers.dimension);
  release(training.speakers.embeddings);
  return { speakers, weights: seconds, seconds };
}

/** Subsegments as items of clustering: each is a window of its own. */
export function asLocalSpeakers(subsegments: ThinnedSubsegments | undefined, dimension: number): Weighted | undefined {
  if (subsegments === undefined || subsegments.count === 0) return undefined;
  const { count, indices, embeddings, every } = subsegments;
  const secondsEach = every * SUBSEGMENT_SHIFT_SECONDS;
  const seconds = new Float64Array(count).fill(secondsEach);
  const clean = new Float32Array(count).fill(secondsEach);
  const speakers = {
    count,
    dimension,
    embeddings,
    windows: Int32Array.from(indices, (index) => -1 - index),
    locals: new Uint8Array(count),
    cleanSeconds: clean,
    activeSeconds: clean,
  };
  return { speakers, weights: seconds, seconds };
}
