/** One speaker found: the weighted sum of its shifted embeddings [dimension], and the weight of its speech. */
export interface SpeakerSum {
  readonly sum: Float64Array;
  readonly weight: number;
}

/** How alike two speakers have to be to be one. All are cosines. */
export interface AlikeParameters {
  /** Of the centroids, at least: people differ more on average, however long they are heard… */
  readonly mergeSimilarity: number;
  /** …and of their embeddings, each with each, on average: the centroid of what is a mixture of people lies near all of them. */
  readonly mergeItemSimilarity: number;
  /**
   * Or of their embeddings alone, each with each, on average, if one speaker were left: from there on two who were found are more likely the
   * same person twice than two people…
   */
  readonly sameItemSimilarity: number;
  /** …and so much more for every factor of e in the number of speakers: n of them make some n² pairs, and hardly one is the same person. */
  readonly sameItemSimilarityGrowth: number;
}

/**
 * Joins the speakers that are more alike than two people are, those with the closest centroids first. VBx weighs every second as if it were
 * drawn anew; over minutes, one person's change of position or voice adds up to evidence for a second speaker, however close the two lie.
 * The mean of many seconds is known so well that its likeness alone tells. For live streams and where more speakers are wanted than were found;
 * otherwise jobs wait for the turns, see `fragments.ts`.
 *
 * @param fewest speakers to leave, at least
 * @returns most speech first
 */
export function joinAlike(speakers: readonly SpeakerSum[], parameters: AlikeParameters, fewest: number): SpeakerSum[] {
  let left = [...speakers];
  while (left.length > Math.max(1, fewest)) {
    const pair = mostAlike(left, parameters);
    if (pair === undefined) break;
    left = withJoined(left, pair);
  }
  return left.sort((a, b) => b.weight - a.weight);
}

/**
 * Joins speakers until so many are left, those first whose joining costs the least: their distance, times the logarithm of the speech that tells them
 * apart. By distance alone two people who talk long would be joined before a fragment of one of them, which lies further from everybody; with
 * all of the speech (Ward's criterion) a person who says little before two fragments of one who talks long.
 *
 * @param most speakers to leave, at most; at least one is left
 * @returns most speech first
 */
export function joinDown(speakers: readonly SpeakerSum[], most: number): SpeakerSum[] {
  let left = [...speakers];
  while (left.length > Math.max(1, most)) left = withJoined(left, cheapest(left));
  return left.sort((a, b) => b.weight - a.weight);
}

function withJoined(speakers: readonly SpeakerSum[], [a, b]: readonly [SpeakerSum, SpeakerSum]): SpeakerSum[] {
  return [...speakers.filter((speaker) => speaker !== a && speaker !== b), sumOf(a, b)];
}

/** Two speakers as one. */
export function sumOf(a: SpeakerSum, b: SpeakerSum): SpeakerSum {
  return { sum: a.sum.map((value, d) => value + b.sum[d]), weight: a.weight + b.weight };
}

/** Cosine of the embeddings of two speakers, each with each, on average. */
export function itemSimilarityOf(a: SpeakerSum, b: SpeakerSum): number {
  return productOf(a.sum, b.sum) / (a.weight * b.weight);
}

/** How much speech tells two speakers apart: the logarithm of the harmonic combination of their weights. */
export function joiningWeightOf(a: SpeakerSum, b: SpeakerSum): number {
  return Math.log1p((a.weight * b.weight) / (a.weight + b.weight));
}

/** Length of a speaker's sum. */
export function lengthOf({ sum }: SpeakerSum): number {
  return Math.sqrt(productOf(sum, sum));
}

/** The two whose joining costs the least. @param speakers at least two */
function cheapest(speakers: readonly SpeakerSum[]): [SpeakerSum, SpeakerSum] {
  let least = Number.POSITIVE_INFINITY;
  let pair: [SpeakerSum, SpeakerSum] = [speakers[0], speakers[1]];
  speakers.forEach((a, index) => {
    for (const b of speakers.slice(0, index)) {
      const cost = (1 - similarityOf(a, b)) * joiningWeightOf(a, b);
      if (cost < least) [least, pair] = [cost, [b, a]];
    }
  });
  return pair;
}

/** Cosine of the centroids of two speakers. */
export function similarityOf(a: SpeakerSum, b: SpeakerSum): number {
  return productOf(a.sum, b.sum) / Math.sqrt(productOf(a.sum, a.sum) * productOf(b.sum, b.sum));
}

/** The two whose centroids are the closest of all that are alike. */
function mostAlike(
  speakers: readonly SpeakerSum[],
  { mergeSimilarity, mergeItemSimilarity, sameItemSimilarity, sameItemSimilarityGrowth }: AlikeParameters,
): [SpeakerSum, SpeakerSum] | undefined {
  const same = sameItemSimilarity + sameItemSimilarityGrowth * Math.log(speakers.length);
  let highest = Number.NEGATIVE_INFINITY;
  let pair: [SpeakerSum, SpeakerSum] | undefined;
  speakers.forEach((a, index) => {
    for (const b of speakers.slice(0, index)) {
      const similarity = similarityOf(a, b);
      const ofItems = itemSimilarityOf(a, b);
      const isAlike = ofItems >= same || (similarity >= mergeSimilarity && ofItems >= mergeItemSimilarity);
      if (isAlike && similarity > highest) [highest, pair] = [similarity, [b, a]];
    }
  });
  return pair;
}

function productOf(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let d = 0; d < a.length; d++) sum += a[d] * b[d];
  return sum;
}
