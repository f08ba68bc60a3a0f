import { largeClusters, renumber, type SizeLimits } from './centroids.ts';
import { cutIntoClusters, type Merge } from './linkage.ts';

/** Some ten milliseconds of cuts of the largest trees. */
const CUTS_BETWEEN_PAUSES = 32;
/** Levels of the tree that are searched; so far below the top it holds nothing but fragments. */
const MAX_LEVELS = 400;

/**
 * Ways to have as many clusters as are wanted, best first: from a level of the tree with enough of them that are large enough,
 * the largest. Coarse levels come before fine ones, and small clusters are taken before large ones are split further: at the
 * usual coarseness the size asked for falls, and only then the levels become finer. A short remark of one more person is
 * likelier than a voice that is two.
 *
 * @param merges the whole tree of `seconds.length` items
 * @param seconds [items] speech that each adds
 * @param pause called now and then
 * @yields [items] cluster of each, the largest first, −1 for dropped ones; in the end one with fewer clusters where there are
 * fewer items
 */
export async function* clustersWanted(
  merges: readonly Merge[],
  seconds: Float64Array,
  parameters: SizeLimits & { readonly coarseDistance: number },
  wanted: number,
  pause: () => Promise<void>,
): AsyncGenerator<Int32Array> {
  const items = seconds.length;
  const most = Math.min(items, wanted + MAX_LEVELS);
  const mergedWhenCoarse = merges.filter(({ height }) => height <= parameters.coarseDistance).length;
  const coarse = Math.min(most, Math.max(wanted, items - mergedWhenCoarse));
  const searches = [
    { from: wanted, to: coarse, scales: [1, 0.5, 0.25, 0.1] },
    { from: coarse + 1, to: most, scales: [1, 0.5, 0.25, 0] },
    { from: wanted, to: most, scales: [0] },
  ];
  let cuts = 0;
  for (const { from, to, scales } of searches) {
    for (const scale of scales) {
      for (let clusters = from; clusters <= to; clusters++) {
        const clusterOf = cutIntoClusters(merges, items, clusters);
        const chosen = largeClusters(clusterOf, seconds, parameters, scale);
        if (chosen.length >= wanted) yield renumber(clusterOf, chosen.slice(0, wanted));
        if (++cuts % CUTS_BETWEEN_PAUSES === 0) await pause();
      }
    }
  }
  yield cutIntoClusters(merges, items, Math.min(items, wanted));
}
