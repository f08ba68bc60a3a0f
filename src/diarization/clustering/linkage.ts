/** One merge of an agglomerative clustering. Items are clusters 0…n−1; merge m makes cluster n + m. */
export interface Merge {
  readonly left: number;
  readonly right: number;
  readonly height: number;
  /** Items below. */
  readonly size: number;
}

export type LinkageMethod = 'average' | 'centroid' | 'complete';

/** Some 30 ms of work: every distance that is looked at while clusters are merged is somewhere else in memory. */
const VISITS_BETWEEN_PAUSES = 2e6;

/** Index of the pair (i, j), i < j, in a condensed distance matrix of n items, as scipy lays it out. */
export function condensedIndex(i: number, j: number, n: number): number {
  return i * n - (i * (i + 1)) / 2 + (j - i - 1);
}

/**
 * Agglomerative hierarchical clustering with an array of nearest neighbours (Anderberg, 1973; Müllner, 2011): O(n²) memory for
 * the condensed distances and nothing else of that size, about O(n²) time.
 *
 * @param distances condensed [n (n−1) / 2]; overwritten. Euclidean distances for `centroid`.
 * @param options.sizes weight of each item in `average` and `centroid` (default 1 each), for items that stand for several
 * @param options.pause called now and then, so that a long clustering does not block an isolate
 * @returns n − 1 merges in the order in which they were made; equal distances are merged by lowest index first
 */
export async function linkage(
  distances: Float32Array,
  n: number,
  method: LinkageMethod,
  options: { readonly sizes?: ArrayLike<number>; readonly pause?: () => Promise<void> } = {},
): Promise<Merge[]> {
  const { sizes, pause } = options;
  let visits = 0;
  if (method === 'centroid') for (let pair = 0; pair < distances.length; pair++) distances[pair] **= 2;
  const weight = sizes === undefined ? new Float64Array(n).fill(1) : Float64Array.from(sizes);
  const items = new Float64Array(n).fill(1);
  const id = Int32Array.from({ length: n }, (_, item) => item);
  const alive = new Uint8Array(n).fill(1);
  // neighbour[i] is the closest living j > i.
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
  await pause?.();
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
      height: method === 'centroid' ? Math.sqrt(Math.max(0, height)) : height,
      size: items[first] + items[second],
    });
    alive[first] = 0;
    const a = weight[first];
    const b = weight[second];
    for (let k = 0; k < n; k++) {
      if (alive[k] === 0 || k === second) continue;
      const toFirst = k < first ? condensedIndex(k, first, n) : condensedIndex(first, k, n);
      const pair = k < second ? condensedIndex(k, second, n) : condensedIndex(second, k, n);
      // Lance–Williams, in place: a function would make a number on the heap for every pair.
      const x = distances[toFirst];
      const y = distances[pair];
      if (method === 'average') distances[pair] = (a * x + b * y) / (a + b);
      else if (method === 'centroid') distances[pair] = (a * x + b * y - (a * b * height) / (a + b)) / (a + b);
      else distances[pair] = Math.max(x, y);
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
    if (visits > VISITS_BETWEEN_PAUSES && pause !== undefined) {
      visits = 0;
      await pause();
    }
  }
  return merges;
}

/**
 * Clusters whose merges all lie at or below `height`, as scipy's `fcluster(…, 'distance')` cuts (a cluster is kept together only
 * when no merge inside it is higher: centroid heights are not monotone).
 * @returns [n] cluster of each item, numbered by first appearance
 */
export function cutAtHeight(merges: readonly Merge[], n: number, height: number): Int32Array {
  const highest = new Float64Array(n + merges.length);
  return cut(merges, n, (merge, index) => {
    highest[n + index] = Math.max(merge.height, highest[merge.left], highest[merge.right]);
    return highest[n + index] <= height;
  });
}

/** The clusters that are left after all but the last `clusters − 1` merges. [n], numbered by first appearance. */
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
  // A merge comes after what it merges, so that its own root is known first when they are visited from the last one down.
  for (let node = parent.length - 1; node >= 0; node--) parent[node] = parent[parent[node]];
  const numbers = new Int32Array(parent.length).fill(-1);
  let next = 0;
  return Int32Array.from({ length: n }, (_, item) => {
    const root = parent[item];
    if (numbers[root] === -1) numbers[root] = next++;
    return numbers[root];
  });
}
