/** Vectors are rows of a flat array; `offset` is the index of a row's first value. */

export function dot(a: Float32Array, aOffset: number, b: Float32Array, bOffset: number, dimension: number): number {
  let sum = 0;
  for (let index = 0; index < dimension; index++) sum += a[aOffset + index]! * b[bOffset + index]!;
  return sum;
}

/** Scales the row to unit length in place; a row of zeros stays as it is. */
export function normalise(values: Float32Array, offset: number, dimension: number): void {
  const length = Math.sqrt(dot(values, offset, values, offset, dimension));
  if (length === 0) return;
  for (let index = 0; index < dimension; index++) values[offset + index]! /= length;
}

/**
 * Cosine similarity of every row with every row.
 * a [rows, dimension], b [columns, dimension] → [rows, columns]; 0 where a vector is all zeros
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
      const product = rowLength * columnLengths[column]!;
      const value = dot(a, row * dimension, b, column * dimension, dimension);
      out[row * columns + column] = product === 0 ? 0 : value / product;
    }
  }
  return out;
}
