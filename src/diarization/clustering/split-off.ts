import { normalise } from '../vectors.ts';
import { type SpeakerSum, similarityOf, sumOf } from './alike.ts';
import { assignWindows } from './assign.ts';
import { cutAtHeight, type Merge } from './linkage.ts';
import type { Weighted } from './weighted.ts';

export interface SplitParameters {
  /** Where more speakers are wanted than were found: distance at which the tree is cut into what may be somebody else. */
  readonly wantedInitialThreshold: number;
  /** Speakers who are found there have so much speech, at least. */
  readonly wantedMinSpeakerSeconds: number;
  /** Cosine of what a speaker says somewhere with the rest of it at which it is as likely somebody else's… */
  readonly splitSimilarity: number;
  /** …and how much the log-odds of that fall with the cosine. */
  readonly splitSlope: number;
}

/** What one speaker says that hangs together. */
interface Piece extends SpeakerSum {
  readonly speaker: number;
}

/**
 * As many speakers as are wanted, of too few: one after the other, that piece of what a speaker says becomes a speaker of its own which is worth the most,
 * its seconds times the probability that it is somebody else's less the probability that it is not. As long as some piece is likely another person's the
 * longest such comes first, afterwards the shortest: if it must be wrong, then by little. VBx, asked for more, would rather part the one who talks most,
 * whose every second counts as new evidence.
 *
 * @param found speakers, sums of shifted embeddings
 * @param items shifted
 * @param tree linkage of the items
 * @returns those found, less what was split off, and the others; undefined where there are not enough pieces
 */
export async function splitOff(
  found: readonly SpeakerSum[],
  items: Weighted,
  tree: readonly Merge[],
  parameters: SplitParameters,
  wanted: number,
  pause: () => Promise<void>,
): Promise<SpeakerSum[] | undefined> {
  let pieces = piecesOf(found, items, cutAtHeight(tree, items.speakers.count, parameters.wantedInitialThreshold));
  const speakers = found.map((sum, speaker) => {
    const own: readonly SpeakerSum[] = pieces.filter((piece) => piece.speaker === speaker);
    return own.length > 0 ? own.reduce(sumOf) : sum;
  });
  while (speakers.length < wanted) {
    const best = mostWorth(pieces, speakers, parameters);
    if (best === undefined) return undefined;
    speakers[best.speaker] = difference(speakers[best.speaker], best);
    pieces = pieces.map((piece) => (piece === best ? { ...piece, speaker: speakers.length } : piece));
    speakers.push({ sum: best.sum, weight: best.weight });
    await pause();
  }
  return speakers;
}

/** Items of one cluster that are one speaker's, by the first of them. */
function piecesOf(found: readonly SpeakerSum[], { speakers, weights }: Weighted, clusterOf: Int32Array): Piece[] {
  const { count, dimension, embeddings } = speakers;
  const centroids = new Float32Array(found.length * dimension);
  found.forEach(({ sum }, speaker) => {
    centroids.set(sum, speaker * dimension);
    normalise(centroids, speaker * dimension, dimension);
  });
  const speakerOf = assignWindows(speakers, centroids, found.length, 1).clusterOf;
  const pieces = new Map<number, { speaker: number; sum: Float64Array; weight: number }>();
  for (let row = 0; row < count; row++) {
    const key = clusterOf[row] * found.length + speakerOf[row];
    const piece = pieces.get(key) ?? { speaker: speakerOf[row], sum: new Float64Array(dimension), weight: 0 };
    for (let d = 0; d < dimension; d++) piece.sum[d] += weights[row] * embeddings[row * dimension + d];
    piece.weight += weights[row];
    pieces.set(key, piece);
  }
  return [...pieces.values()];
}

/** The first of those that are worth the most; undefined where none is long enough, or leaves enough. */
function mostWorth(
  pieces: readonly Piece[],
  speakers: readonly SpeakerSum[],
  { splitSimilarity, splitSlope, wantedMinSpeakerSeconds }: SplitParameters,
): Piece | undefined {
  let most = Number.NEGATIVE_INFINITY;
  let best: Piece | undefined;
  for (const piece of pieces) {
    const rest = difference(speakers[piece.speaker], piece);
    const seconds = Math.min(piece.weight, rest.weight);
    if (seconds < wantedMinSpeakerSeconds) continue;
    // tanh(x / 2) is the difference of the two probabilities of log-odds x.
    const worth = seconds * Math.tanh((splitSlope * (splitSimilarity - similarityOf(piece, rest))) / 2);
    if (worth > most) [most, best] = [worth, piece];
  }
  return best;
}

function difference(a: SpeakerSum, b: SpeakerSum): SpeakerSum {
  return { sum: a.sum.map((value, d) => value - b.sum[d]), weight: a.weight - b.weight };
}
