/** One speaker found: the weighted sum of its shifted embeddings [dimension], and the weight of its speech. */
export interface SpeakerSum {
  readonly sum: Float64Array;
  readonly weight: number;
}

/**
 * Joins the speakers whose centroids are more alike than two people's are, the most alike first. VBx weighs every second as if it were
 * drawn anew; over minutes, one person's change of position or voice adds up to evidence for a second speaker, however close the two lie.
 * The mean of many seconds is known so well that its likeness alone tells.
 *
 * @param similarity cosine above which two centroids are one person's
 * @param fewest speakers to leave, at least
 * @returns most speech first
 */
export function joinAlike(speakers: readonly SpeakerSum[], similarity: number, fewest: number): SpeakerSum[] {
  let left = [...speakers];
  while (left.length > Math.max(1, fewest)) {
    const pair = mostAlike(left, similarity);
    if (pair === undefined) break;
    const joined = {
      sum: pair[0].sum.map((value, d) => value + pair[1].sum[d]!),
      weight: pair[0].weight + pair[1].weight,
    };
    left = [...left.filter((speaker) => !pair.includes(speaker)), joined];
  }
  return left.sort((a, b) => b.weight - a.weight);
}

/** The two that are most alike, where that is by more than `similarity`. */
function mostAlike(speakers: readonly SpeakerSum[], similarity: number): [SpeakerSum, SpeakerSum] | undefined {
  let highest = similarity;
  let pair: [SpeakerSum, SpeakerSum] | undefined;
  speakers.forEach((a, index) => {
    for (const b of speakers.slice(0, index)) {
      const value = cosine(a.sum, b.sum);
      if (value > highest) [highest, pair] = [value, [b, a]];
    }
  });
  return pair;
}

function cosine(a: Float64Array, b: Float64Array): number {
  let [product, squaresA, squaresB] = [0, 0, 0];
  for (let d = 0; d < a.length; d++) {
    product += a[d]! * b[d]!;
    squaresA += a[d]! ** 2;
    squaresB += b[d]! ** 2;
  }
  return product / Math.sqrt(Math.max(1e-24, squaresA * squaresB));
}
