import { largeClusters, renumber, type SizeLimits } from './centroids.ts';
import { cutIntoClusters, type Merge } from './linkage.ts';

/** Levels of the tree that are searched; so far below the top it holds nothing but fragments. */
const MAX_LEVELS = 400;

/**
 * As many clusters as are wanted: from the coarsest level of the tree with enough of them that are large enough, the largest.
 * Small clusters are taken before large ones are split further: at the usual coarseness the size asked for falls, and only then
 * the levels become finer. A short remark of one more person is likelier than a voice that is two.
 *
 * @param merges the whole tree of `seconds.length` items
 * @param seconds [items] speech that each adds
 * @returns [items] cluster of each, the largest first, −1 for dropped ones; fewer clusters only where there are fewer items
 */
export function clustersWanted(
  merges: readonly Merge[],
  seconds: Float64Array,
  parameters: SizeLimits & { readonly coarseDistance: number },
  wanted: number,
): Int32Array {
  const items = seconds.length;
  const most = Math.min(items, wanted + MAX_LEVELS);
  const mergedWhenCoarse = merges.filter(({ height }) => height <= parameters.coarseDistance).length;
  const coarse = Math.min(most, Math.max(wanted, items - mergedWhenCoarse));
  const searches = [
    { from: wanted, to: coarse, scales: [1, 0.5, 0.25] },
    { from: coarse + 1, to: most, scales: [1, 0.5, 0.25, 0] },
    { from: wanted, to: most, scales: [0] },
  ];
  for (const { from, to, scales } of searches) {
    for (const scale of scales) {
      for (let clusters = from; clusters <= to; clusters++) {
        const clusterOf = cutIntoClusters(merges, items, clusters);
        const chosen = largeClusters(clusterOf, seconds, parameters, scale);
        if (chosen.length >= wanted) return renumber(clusterOf, chosen.slice(0, wanted));
      }
    }
  }
  return cutIntoClusters(merges, items, Math.min(items, wanted));
}
