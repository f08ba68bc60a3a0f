import type { LocalSpeakers } from '../local-speakers.ts';
import { condensedIndex } from './linkage.ts';

/** Rows between two pauses: some ten milliseconds of work in the largest clusterings. */
const ROWS_BETWEEN_PAUSES = 64;

/**
 * Cosine distances between all pairs of embeddings of unit length.
 *
 * @param leastWithinWindow distance, at least, between two of one window
 * @returns condensed [count (count − 1) / 2], as scipy lays it out; 0…2
 */
export async function cosineDistances(
  { count, dimension, embeddings, windows }: LocalSpeakers,
  pause: () => Promise<void>,
  leastWithinWindow = 0,
): Promise<Float32Array> {
  const out = new Float32Array((count * (count - 1)) / 2);
  let sinceLastPause = 0;
  for (let row = 0; row < count; row += 2) {
    products(embeddings, dimension, row, count, out);
    for (let i = row; i < Math.min(row + 2, count); i++) {
      const own = condensedIndex(i, i + 1, count) - (i + 1);
      for (let j = i + 1; j < count; j++) {
        const distance = Math.max(0, 1 - out[own + j]);
        out[own + j] = windows[i] === windows[j] ? Math.max(distance, leastWithinWindow) : distance;
      }
    }
    sinceLastPause += 2;
    if (sinceLastPause < ROWS_BETWEEN_PAUSES) continue;
    sinceLastPause = 0;
    await pause();
  }
  return out;
}

/**
 * Products of rows i and i + 1 with each other and with all rows behind them: two times four at once, so that a value read serves several of them. Each
 * sum is taken in the order of the dimensions.
 */
function products(rows: Float32Array, dimension: number, i: number, count: number, out: Float32Array): void {
  if (i + 1 === count) return;
  const a = i * dimension;
  const b = a + dimension;
  const fromA = condensedIndex(i, i + 1, count) - (i + 1);
  // The last two rows have nothing behind them.
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
