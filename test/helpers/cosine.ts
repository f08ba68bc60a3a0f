import { dot } from '../../src/diarization/numerics.ts';

/**
 * Cosine similarity of every row with every row.
 * a [rows, dimension], b [columns, dimension] → [rows, columns]; 0 if a vector is all zeros
 */
export function cosineMatrix(a: Float32Array, b: Float32Array, dimension: number): Float32Array {
  const rows = a.length / dimension;
  const columns = b.length / dimension;
  const length = (values: Float32Array, row: number) =>
    Math.sqrt(dot(values, row * dimension, values, row * dimension, dimension));
  const columnLengths = Float64Array.from({ length: columns }, (_, column) => length(b, column));
  const out = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const rowLength = length(a, row);
    for (let column = 0; column < columns; column++) {
      const product = rowLength * columnLengths[column];
      const value = dot(a, row * dimension, b, column * dimension, dimension);
      out[row * columns + column] = product === 0 ? 0 : value / product;
    }
  }
  return out;
}
