import type { Items } from '../local-speakers.ts';
import { dot, normalise } from '../numerics.ts';

/** One merge of an agglomerative clustering. Items are clusters 0…n−1; merge m makes cluster n + m. */
export interface Merge {
  readonly left: number;
  readonly right: number;
  readonly height: number;
  /** Items of the merged cluster. */
  readonly size: number;
}

/** Distances read between two pauses, about 30 ms of work: each read is a cache miss. */
const VISITS_BETWEEN_PAUSES = 2e6;

/** Index of the pair (i, j), i < j, in a condensed distance matrix of n items, as scipy lays it out. */
export function condensedIndex(i: number, j: number, n: number): number {
  return i * n - (i * (i + 1)) / 2 + (j - i - 1);
}

/**
 * Agglomerative hierarchical clustering by average linkage with an array of nearest neighbours (Anderberg, 1973;
 * Müllner, 2011): O(n²) memory, for the condensed distances only, and about O(n²) time.
 *
 * @param distances condensed [n (n−1) / 2]; overwritten
 * @param weights [n] weight of each item in the averages
 * @param pause called at intervals, so that a long clustering does not block an isolate
 * @returns n − 1 merges in order; of equal distances the lowest index is merged first
 */
export async function averageLinkage(
  distances: Float32Array,
  weights: ArrayLike<number>,
  pause: () => Promise<void>,
): Promise<Merge[]> {
  const n = weights.length;
  let visits = 0;
  const weight = Float64Array.from(weights);
  const items = new Float64Array(n).fill(1);
  const id = Int32Array.from({ length: n }, (_, item) => item);
  const alive = new Uint8Array(n).fill(1);
  // neighbour[i] is the closest j > i that is still alive.
  const neighbour = new Int32Array(n).fill(-1);
  const nearest = new Float64Array(n).fill(Number.POSITIVE_INFINITY);

  function findNeighbour(i: number): void {
    visits += n - i;
    let best = -1;
    let smallest = Number.POSITIVE_INFINITY;
    let pair = condensedIndex(i, i + 1, n);
    for (let j = i + 1; j < n; j++, pair++) {
      if (alive[j] === 1 && distances[pair] < smallest) {
        smallest = distances[pair];
        best = j;
      }
    }
    neighbour[i] = best;
    nearest[i] = smallest;
  }

  for (let i = 0; i < n - 1; i++) findNeighbour(i);
  await pause();
  visits = 0;
  const merges: Merge[] = [];
  for (let step = 0; step < n - 1; step++) {
    let first = -1;
    for (let i = 0; i < n - 1; i++) {
      if (alive[i] === 1 && neighbour[i] >= 0 && (first < 0 || nearest[i] < nearest[first])) first = i;
    }
    const second = neighbour[first];
    const height = nearest[first];
    merges.push({
      left: Math.min(id[first], id[second]),
      right: Math.max(id[first], id[second]),
      height,
      size: items[first] + items[second],
    });
    alive[first] = 0;
    const a = weight[first];
    const b = weight[second];
    for (let k = 0; k < n; k++) {
      if (alive[k] === 0 || k === second) continue;
      const toFirst = k < first ? condensedIndex(k, first, n) : condensedIndex(first, k, n);
      const pair = k < second ? condensedIndex(k, second, n) : condensedIndex(second, k, n);
      // Lance–Williams, inlined: a function call would allocate a number for every pair.
      const x = distances[toFirst];
      const y = distances[pair];
      distances[pair] = (a * x + b * y) / (a + b);
    }
    weight[second] = a + b;
    items[second] += items[first];
    id[second] = n + step;
    for (let k = 0; k < second; k++) {
      if (alive[k] === 0) continue;
      if (neighbour[k] === first || neighbour[k] === second) findNeighbour(k);
      else {
        const distance = distances[condensedIndex(k, second, n)];
        if (distance < nearest[k] || (distance === nearest[k] && second < neighbour[k])) {
          nearest[k] = distance;
          neighbour[k] = second;
        }
      }
    }
    if (second < n - 1) findNeighbour(second);
    visits += 2 * n;
    if (visits > VISITS_BETWEEN_PAUSES) {
      visits = 0;
      await pause();
    }
  }
  return merges;
}

/**
 * Clusters whose merges all lie at or below `height`, as with scipy's `fcluster(…, 'distance')`.
 * @returns [n] cluster of each item, numbered by first appearance
 */
export function cutAtHeight(merges: readonly Merge[], n: number, height: number): Int32Array {
  return cut(merges, n, (merge) => merge.height <= height);
}

/** Clusters after all but the last `clusters − 1` merges. @returns [n], numbered by first appearance */
export function cutIntoClusters(merges: readonly Merge[], n: number, clusters: number): Int32Array {
  return cut(merges, n, (_, index) => index < n - clusters);
}

function cut(merges: readonly Merge[], n: number, apply: (merge: Merge, index: number) => boolean): Int32Array {
  const parent = Int32Array.from({ length: n + merges.length }, (_, node) => node);
  merges.forEach((merge, index) => {
    if (!apply(merge, index)) return;
    parent[merge.left] = n + index;
    parent[merge.right] = n + index;
  });
  // Each merge has a higher index than its members: going down, its root is final before theirs.
  for (let node = parent.length - 1; node >= 0; node--) parent[node] = parent[parent[node]];
  const numbers = new Int32Array(parent.length).fill(-1);
  let next = 0;
  return Int32Array.from({ length: n }, (_, item) => {
    const root = parent[item];
    if (numbers[root] === -1) numbers[root] = next++;
    return numbers[root];
  });
}

/** Rows between two pauses: about 10 ms of work in the largest clusterings. */
const ROWS_BETWEEN_PAUSES = 64;

/**
 * Cosine distances between all pairs of embeddings of unit length.
 *
 * @param embeddings [count, dimension] of the items
 * @returns condensed [count (count − 1) / 2], as scipy lays it out; 0…2
 */
export async function cosineDistances(
  { count, dimension }: Pick<Items, 'count' | 'dimension'>,
  embeddings: Float32Array,
  pause: () => Promise<void>,
): Promise<Float32Array> {
  const out = new Float32Array((count * (count - 1)) / 2);
  let sinceLastPause = 0;
  for (let row = 0; row < count; row += 2) {
    products(embeddings, dimension, row, count, out);
    for (let i = row; i < Math.min(row + 2, count); i++) {
      const own = condensedIndex(i, i + 1, count) - (i + 1);
      for (let j = i + 1; j < count; j++) out[own + j] = Math.max(0, 1 - out[own + j]);
    }
    sinceLastPause += 2;
    if (sinceLastPause < ROWS_BETWEEN_PAUSES) continue;
    sinceLastPause = 0;
    await pause();
  }
  return out;
}

/**
 * Products of rows i and i + 1 with each other and with all later rows, two rows by four, so that each value is read
 * once for several products. Each sum runs in the order of the dimensions.
 */
function products(rows: Float32Array, dimension: number, i: number, count: number, out: Float32Array): void {
  if (i + 1 === count) return;
  const a = i * dimension;
  const b = a + dimension;
  const fromA = condensedIndex(i, i + 1, count) - (i + 1);
  // No row follows the last two.
  const fromB = condensedIndex(i + 1, i + 2, count) - (i + 2);
  out[fromA + i + 1] = product(rows, a, b, dimension);
  let j = i + 2;
  for (; j + 3 < count; j += 4) {
    const r0 = j * dimension;
    const r1 = r0 + dimension;
    const r2 = r1 + dimension;
    const r3 = r2 + dimension;
    let a0 = 0;
    let a1 = 0;
    let a2 = 0;
    let a3 = 0;
    let b0 = 0;
    let b1 = 0;
    let b2 = 0;
    let b3 = 0;
    for (let d = 0; d < dimension; d++) {
      const inA = rows[a + d];
      const inB = rows[b + d];
      const in0 = rows[r0 + d];
      const in1 = rows[r1 + d];
      const in2 = rows[r2 + d];
      const in3 = rows[r3 + d];
      a0 += inA * in0;
      a1 += inA * in1;
      a2 += inA * in2;
      a3 += inA * in3;
      b0 += inB * in0;
      b1 += inB * in1;
      b2 += inB * in2;
      b3 += inB * in3;
    }
    out[fromA + j] = a0;
    out[fromA + j + 1] = a1;
    out[fromA + j + 2] = a2;
    out[fromA + j + 3] = a3;
    out[fromB + j] = b0;
    out[fromB + j + 1] = b1;
    out[fromB + j + 2] = b2;
    out[fromB + j + 3] = b3;
  }
  for (; j < count; j++) {
    out[fromA + j] = product(rows, a, j * dimension, dimension);
    out[fromB + j] = product(rows, b, j * dimension, dimension);
  }
}

function product(rows: Float32Array, a: number, b: number, dimension: number): number {
  let sum = 0;
  for (let d = 0; d < dimension; d++) sum += rows[a + d] * rows[b + d];
  return sum;
}

/**
 * Clusters with enough speech.
 *
 * @param clusterOf [count], clusters numbered by first appearance
 * @param seconds [count] speech of each item
 * @returns their numbers, most speech first; the largest is always kept
 */
export function largeClusters(
  clusterOf: Int32Array,
  seconds: Float64Array,
  minSeconds: number,
  minShare: number,
): number[] {
  const sums: number[] = [];
  clusterOf.forEach((cluster, row) => {
    while (sums.length <= cluster) sums.push(0);
    sums[cluster] += seconds[row];
  });
  const order = sums.map((_, cluster) => cluster).sort((a, b) => sums[b] - sums[a] || a - b);
  const needed = Math.max(minSeconds, minShare * sums[order[0]]);
  return order.filter((cluster, place) => place === 0 || sums[cluster] >= needed);
}

/** Mean of the items of each chosen cluster, weighted by seconds. @returns [chosen, dimension], unit length */
export function centroidsOfClusters(
  { count, dimension, seconds }: Items,
  embeddings: Float32Array,
  clusterOf: Int32Array,
  chosen: readonly number[],
): Float32Array {
  const position = new Map(chosen.map((cluster, index) => [cluster, index]));
  const sums = new Float64Array(chosen.length * dimension);
  for (let row = 0; row < count; row++) {
    const at = position.get(clusterOf[row]);
    if (at === undefined) continue;
    for (let d = 0; d < dimension; d++) sums[at * dimension + d] += seconds[row] * embeddings[row * dimension + d];
  }
  const centroids = Float32Array.from(sums);
  for (let at = 0; at < chosen.length; at++) normalise(centroids, at * dimension, dimension);
  return centroids;
}

/** @returns [count] the nearest centroid of each item */
export function nearestCentroids(
  { count, dimension }: Items,
  embeddings: Float32Array,
  centroids: Float32Array,
): Int32Array {
  return Int32Array.from({ length: count }, (_, row) => {
    let best = 0;
    let highest = Number.NEGATIVE_INFINITY;
    for (let cluster = 0; cluster * dimension < centroids.length; cluster++) {
      const score = dot(embeddings, row * dimension, centroids, cluster * dimension, dimension);
      if (score > highest) [best, highest] = [cluster, score];
    }
    return best;
  });
}
