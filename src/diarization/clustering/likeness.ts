import { dot, normalise } from '../vectors.ts';
import type { ClusterModel } from './strategy.ts';

/**
 * Cosine similarity of one embedding to every speaker found, the model's shift taken from it first.
 *
 * @param embeddings [rows, dimension], unit length
 * @param likeness [clusters], written
 * @param scratch [dimension], overwritten
 */
export function likenessTo(
  { clusters, dimension, shift, centroids }: ClusterModel,
  embeddings: Float32Array,
  row: number,
  likeness: Float32Array,
  scratch: Float32Array,
): void {
  for (let d = 0; d < dimension; d++) scratch[d] = embeddings[row * dimension + d] - shift[d];
  normalise(scratch, 0, dimension);
  for (let cluster = 0; cluster < clusters; cluster++) {
    likeness[cluster] = dot(scratch, 0, centroids, cluster * dimension, dimension);
  }
}
