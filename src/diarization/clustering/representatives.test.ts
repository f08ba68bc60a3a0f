import { describe, expect, it } from 'vitest';
import { KIND, type LocalSpeakers, type Representing, select } from '../local-speakers.ts';
import { Representatives } from './representatives.ts';

const noPause = async () => undefined;

/** Two voices that alternate, one row a window. */
function rows(count: number): LocalSpeakers {
  const embeddings = new Float32Array(count * 2);
  for (let row = 0; row < count; row++) embeddings[row * 2 + (row % 2)] = 1;
  return {
    count,
    dimension: 2,
    embeddings,
    windows: Int32Array.from({ length: count }, (_, row) => row),
    locals: new Uint8Array(count),
    cleanSeconds: new Float32Array(count).fill(2),
    activeSeconds: new Float32Array(count).fill(3),
  };
}

async function gather(all: LocalSpeakers, shards: number, maxItems: number): Promise<Representing> {
  const representatives = new Representatives(2, all.count, maxItems, noPause);
  const length = Math.ceil(all.count / shards);
  for (let start = 0; start < all.count; start += length) {
    const end = Math.min(all.count, start + length);
    await representatives.add(
      select(
        all,
        Array.from({ length: end - start }, (_, index) => start + index),
      ),
    );
  }
  return representatives.finish();
}

describe('Representatives', () => {
  it('keeps all local speakers up to the limit', async () => {
    expect(await gather(rows(700), 7, 700)).toEqual({ ...rows(700), kinds: new Uint8Array(700).fill(KIND.local) });
  });

  it('reduces a long recording below the limit, independent of the shards', async () => {
    const inOneShard = await gather(rows(3000), 1, 100);
    expect(inOneShard.count).toBeLessThanOrEqual(100);
    expect(inOneShard.count).toBeGreaterThanOrEqual(20);
    expect(inOneShard.cleanSeconds.reduce((sum, value) => sum + value, 0)).toBeCloseTo(6000, 0);
    for (const shards of [3, 10, 37]) expect(await gather(rows(3000), shards, 100)).toEqual(inOneShard);
    for (let row = 0; row < inOneShard.count; row++) {
      // No representative mixes the two voices.
      expect(Math.max(inOneShard.embeddings[row * 2], inOneShard.embeddings[row * 2 + 1])).toBeCloseTo(1, 5);
    }
    expect(inOneShard.kinds?.every((kind) => kind === KIND.representative)).toBe(true);
  });
});
