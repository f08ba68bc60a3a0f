import { expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { cosineDistances } from './distances.ts';

const DIMENSION = 5;

function rowsOf(count: number): LocalSpeakers {
  const embeddings = Float32Array.from({ length: count * DIMENSION }, (_, index) => Math.sin(index * index) / 2);
  const seconds = new Float32Array(count).fill(2);
  return {
    count,
    dimension: DIMENSION,
    embeddings,
    windows: Int32Array.from({ length: count }, (_, row) => Math.floor(row / 3)),
    locals: new Uint8Array(count),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}

it.each([1, 2, 3, 4, 5, 6, 7, 11, 130])(
  'the distances of %i rows are those of each pair, in the order of scipy',
  async (count) => {
    const rows = rowsOf(count);
    const expected: number[] = [];
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        let product = 0;
        for (let d = 0; d < DIMENSION; d++)
          product += rows.embeddings[i * DIMENSION + d] * rows.embeddings[j * DIMENSION + d];
        const distance = Math.max(0, Math.fround(1 - Math.fround(product)));
        expected.push(rows.windows[i] === rows.windows[j] ? Math.max(distance, Math.fround(0.9)) : distance);
      }
    }
    let pauses = 0;
    const pause = async () => void pauses++;
    expect(Array.from(await cosineDistances(rows, pause, 0.9))).toEqual(expected);
    expect(pauses).toBe(Math.floor(count / 64));
  },
);
