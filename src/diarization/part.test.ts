import { describe, expect, it } from 'vitest';
import { readAhead } from './part.ts';

describe('readAhead', () => {
  it('yields all results in order and reads one ahead', async () => {
    const requested: number[] = [];
    const read = async (index: number) => {
      requested.push(index);
      return 10 * index;
    };
    const seen: [number, number][] = [];
    for await (const value of readAhead(4, read)) seen.push([value, requested.length]);
    expect(seen).toEqual([
      [0, 2],
      [10, 3],
      [20, 4],
      [30, 4],
    ]);
  });

  it('yields nothing for a count of 0', async () => {
    for await (const value of readAhead(0, async (index) => index)) expect.unreachable(`${value}`);
  });

  it('throws an error after the results before it, and leaves no unhandled rejection', async () => {
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
