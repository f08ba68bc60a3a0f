/** Vectors are rows of a flat array; `offset` is the index of a row's first value. */

type Rows = Float32Array | Float64Array;

/** Four sums, so that no addition waits for the one before it. */
export function dot(a: Rows, aOffset: number, b: Rows, bOffset: number, dimension: number): number {
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  let index = 0;
  for (; index + 3 < dimension; index += 4) {
    sum0 += a[aOffset + index] * b[bOffset + index];
    sum1 += a[aOffset + index + 1] * b[bOffset + index + 1];
    sum2 += a[aOffset + index + 2] * b[bOffset + index + 2];
    sum3 += a[aOffset + index + 3] * b[bOffset + index + 3];
  }
  for (; index < dimension; index++) sum0 += a[aOffset + index] * b[bOffset + index];
  return sum0 + sum1 + (sum2 + sum3);
}

/** Scales the row to unit length in place; a row of zeros stays as it is. */
export function normalise(values: Float32Array, offset: number, dimension: number): void {
  const length = Math.sqrt(dot(values, offset, values, offset, dimension));
  if (length === 0) return;
  for (let index = 0; index < dimension; index++) values[offset + index] /= length;
}
