import { describe, expect, it } from 'vitest';
import { readAhead } from './part.ts';

describe('readAhead', () => {
  it('gives all in order, the next one being on its way while one is used', async () => {
    const asked: number[] = [];
    const read = async (index: number) => {
      asked.push(index);
      return 10 * index;
    };
    const seen: [number, number][] = [];
    for await (const value of readAhead(4, read)) seen.push([value, asked.length]);
    expect(seen).toEqual([
      [0, 2],
      [10, 3],
      [20, 4],
      [30, 4],
    ]);
  });

  it('gives nothing of nothing', async () => {
    for await (const value of readAhead(0, async (index) => index)) expect.unreachable(`${value}`);
  });

  it('tells a fault after what came before it, and leaves none behind when the reader stops', async () => {
    const read = async (index: number) => {
      if (index === 1) throw new Error('gone');
      return index;
    };
    const seen: number[] = [];
    const all = async () => {
      for await (const value of readAhead(3, read)) seen.push(value);
    };
    await expect(all()).rejects.toThrow('gone');
    expect(seen).toEqual([0]);
    // An unhandled rejection would fail the run of the tests.
    for await (const value of readAhead(3, read)) if (value === 0) break;
  });
});
