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

async function gather(all: LocalSpeakers, pieces: number, maxItems: number): Promise<Representing> {
  const gathered = new Representatives(2, all.count, { maxItems, minCleanSeconds: 1 }, noPause);
  const length = Math.ceil(all.count / pieces);
  for (let start = 0; start < all.count; start += length) {
    const end = Math.min(all.count, start + length);
    await gathered.add(
      select(
        all,
        Array.from({ length: end - start }, (_, index) => start + index),
      ),
    );
  }
  return gathered.finish();
}

describe('Representatives', () => {
  it('keeps everybody while there is room', async () => {
    expect(await gather(rows(700), 7, 700)).toEqual({ ...rows(700), kinds: new Uint8Array(700).fill(KIND.local) });
  });

  it('reduces a long recording to its share, whatever the shards', async () => {
    const whole = await gather(rows(3000), 1, 100);
    expect(whole.count).toBeLessThanOrEqual(100);
    expect(whole.count).toBeGreaterThanOrEqual(20);
    expect(whole.cleanSeconds.reduce((sum, value) => sum + value, 0)).toBeCloseTo(6000, 0);
    for (const pieces of [3, 10, 37]) expect(await gather(rows(3000), pieces, 100)).toEqual(whole);
    for (let row = 0; row < whole.count; row++) {
      // Voices are not mixed.
      expect(Math.max(whole.embeddings[row * 2], whole.embeddings[row * 2 + 1])).toBeCloseTo(1, 5);
    }
    expect(whole.kinds?.every((kind) => kind === KIND.representative)).toBe(true);
  });

  it('keeps the cleanest where every remark is short: a long recording of them was told to hold no speech', async () => {
    const short = { ...rows(3000), cleanSeconds: new Float32Array(3000).fill(0.8) };
    const few = await gather(short, 1, 100);
    expect(few.count).toBeGreaterThanOrEqual(20);
    expect(few.count).toBeLessThanOrEqual(100);
    for (const pieces of [3, 10]) expect(await gather(short, pieces, 100)).toEqual(few);
    const oneCleaner = {
      ...short,
      cleanSeconds: short.cleanSeconds.map((seconds, row) => (row === 17 ? 0.9 : seconds)),
    };
    expect(Array.from((await gather(oneCleaner, 1, 100)).cleanSeconds)).toContain(Math.fround(0.9));
  });
});
