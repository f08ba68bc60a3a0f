import type { LocalSpeakers } from '../local-speakers.ts';

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
  let pair = 0;
  for (let i = 0; i < count; i++) {
    if (i % ROWS_BETWEEN_PAUSES === ROWS_BETWEEN_PAUSES - 1) await pause();
    const first = pair;
    pair = products(embeddings, dimension, i, count, out, pair);
    for (let j = i + 1; j < count; j++) {
      const distance = Math.max(0, 1 - out[first + j - i - 1]!);
      out[first + j - i - 1] = windows[i] === windows[j] ? Math.max(distance, leastWithinWindow) : distance;
    }
  }
  return out;
}

/** Products of row i with the rows behind it, from `out[at]` on: four at a time, so that a value of row i is read once for them. @returns where the next go */
function products(
  rows: Float32Array,
  dimension: number,
  i: number,
  count: number,
  out: Float32Array,
  at: number,
): number {
  const own = i * dimension;
  let next = at;
  let j = i + 1;
  for (; j + 3 < count; j += 4) {
    const r0 = j * dimension;
    const r1 = r0 + dimension;
    const r2 = r1 + dimension;
    const r3 = r2 + dimension;
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let d = 0; d < dimension; d++) {
      const value = rows[own + d]!;
      sum0 += value * rows[r0 + d]!;
      sum1 += value * rows[r1 + d]!;
      sum2 += value * rows[r2 + d]!;
      sum3 += value * rows[r3 + d]!;
    }
    out[next] = sum0;
    out[next + 1] = sum1;
    out[next + 2] = sum2;
    out[next + 3] = sum3;
    next += 4;
  }
  for (; j < count; j++) {
    let sum = 0;
    for (let d = 0; d < dimension; d++) sum += rows[own + d]! * rows[j * dimension + d]!;
    out[next++] = sum;
  }
  return next;
}
