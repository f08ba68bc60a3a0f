import { assignOptimally } from '../assignment.ts';
import type { LocalSpeakers } from '../local-speakers.ts';
import { argmax } from '../powerset.ts';
import { dot } from '../vectors.ts';
import type { Assignment } from './strategy.ts';

/**
 * Assigns every local speaker to a centroid by cosine similarity, such that two local speakers of one window never share one:
 * optimal assignment within each window. Only where a window has more local speakers than there are clusters do those left
 * over go to the closest one: their speech is somebody's.
 *
 * @param centroids [clusters, dimension], unit length
 */
export function assignWindows(
  speakers: LocalSpeakers,
  centroids: Float32Array,
  clusters: number,
  temperature: number,
): Assignment {
  const { count, dimension, embeddings, windows } = speakers;
  const scores = new Float32Array(count * clusters);
  for (let row = 0; row < count; row++) {
    for (let cluster = 0; cluster < clusters; cluster++) {
      scores[row * clusters + cluster] = dot(embeddings, row * dimension, centroids, cluster * dimension, dimension);
    }
  }
  const clusterOf = new Int32Array(count);
  for (let start = 0; start < count; ) {
    let end = start + 1;
    while (end < count && windows[end] === windows[start]) end++;
    const chosen = assignOptimally(scores.subarray(start * clusters, end * clusters), end - start, clusters);
    chosen.forEach((cluster, index) => {
      const row = start + index;
      clusterOf[row] = cluster >= 0 ? cluster : argmax(scores, row * clusters, clusters);
    });
    start = end;
  }
  return { clusterOf, posterior: softmaxRows(scores, clusters, temperature) };
}

function softmaxRows(scores: Float32Array, columns: number, temperature: number): Float32Array {
  const out = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += columns) {
    const largest = scores[start + argmax(scores, start, columns)];
    let sum = 0;
    for (let column = 0; column < columns; column++) {
      const value = Math.exp((scores[start + column] - largest) / temperature);
      out[start + column] = value;
      sum += value;
    }
    for (let column = 0; column < columns; column++) out[start + column] /= sum;
  }
  return out;
}
