import { describe, expect, it } from 'vitest';
import { SampleBuffer } from './sample-buffer.ts';

async function* counting(from: number, blocks: readonly number[]) {
  let next = from;
  for (const length of blocks) yield Float32Array.from({ length }, () => next++);
}

describe('SampleBuffer', () => {
  it('returns samples by absolute position for any block sizes', async () => {
    const buffer = new SampleBuffer(counting(1000, [3, 1, 200, 7]), 1000);
    await buffer.fill(1005);
    expect(Array.from(buffer.view(1002, 1006))).toEqual([1002, 1003, 1004, 1005]);
    buffer.discardBefore(1100);
    await buffer.fill(1211);
    expect(Array.from(buffer.view(1209, 1211))).toEqual([1209, 1210]);
    expect(() => buffer.view(1099, 1101)).toThrow(/gone/);
  });

  it('returns silence for samples that the stream does not deliver', async () => {
    const buffer = new SampleBuffer(counting(1, [2]), 0);
    await buffer.fill(100);
    expect(buffer.receivedUntil).toBe(2);
    expect(Array.from(buffer.view(1, 4))).toEqual([2, 0, 0]);
    expect(Array.from(buffer.view(50, 52))).toEqual([0, 0]);
  });
});
