import { describe, expect, it } from 'vitest';
import { memorySource, random } from '../../test/helpers/audio.ts';
import { BlockReader, MAX_PEEK_BYTES, OutOfBounds } from './block-reader.ts';

const bytes = Uint8Array.from({ length: 10_000 }, (_, i) => (i * 7 + (i >> 8)) & 255);

describe('BlockReader', () => {
  it('gives the bytes of the source from any offset, in any order', async () => {
    const reader = new BlockReader(memorySource(bytes), 256);
    const next = random(1);
    for (let i = 0; i < 300; i++) {
      const offset = Math.floor(next() * 10_100);
      const length = Math.floor(next() * 900);
      const view = await reader.peek(offset, length);
      const expected = bytes.subarray(offset, offset + length);
      expect(view.length).toBeGreaterThanOrEqual(expected.length);
      expect(Buffer.compare(view.subarray(0, expected.length), expected)).toBe(0);
      expect(Buffer.compare(view, bytes.subarray(offset, offset + view.length))).toBe(0);
    }
  });

  it('reads each block once when it walks forward, in aligned blocks', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 1024);
    for (let offset = 0; offset < bytes.length; offset += 10) await reader.peek(offset, 30);
    expect(source.reads.map(({ offset }) => offset)).toEqual([0, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216]);
    expect(source.reads.at(-1)?.length).toBe(10_000 - 9216);
  });

  it('goes through a file many times, but not back and forth for ever', async () => {
    const walk = async (offsets: number[], times: number) => {
      const reader = new BlockReader(memorySource(bytes), 1000);
      for (let i = 0; i < times; i++) for (const offset of offsets) await reader.peek(offset, 4);
    };
    await walk([0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000], 32);
    await expect(walk([0, 6000, 1000, 8000, 3000, 5000], 2000)).rejects.toThrow(OutOfBounds);
  });

  it('keeps the view of the block in use while it reads ahead', async () => {
    const reader = new BlockReader(memorySource(bytes), 512);
    for (let offset = 0; offset + 512 <= bytes.length; offset += 512) {
      const view = await reader.peek(offset, 1);
      await new Promise((done) => setTimeout(done, 1));
      expect(Buffer.compare(view, bytes.subarray(offset, offset + 512))).toBe(0);
    }
  });

  it('passes failures on, and tries again at the next call', async () => {
    const good = memorySource(bytes);
    let failures = 2;
    const reader = new BlockReader(
      {
        sizeBytes: bytes.length,
        async read(offset, length) {
          if (offset >= 1024 && failures-- > 0) throw new Error('broken');
          return good.read(offset, length);
        },
      },
      1024,
    );
    await reader.peek(0, 1);
    // The first failure hits the block read ahead, and nobody hears of it.
    await new Promise((done) => setTimeout(done, 1));
    await expect(reader.peek(1024, 1)).rejects.toThrow('broken');
    expect((await reader.peek(1024, 4)).subarray(0, 4)).toEqual(bytes.subarray(1024, 1028));
  });

  it('refuses a source that gives less than it has', async () => {
    const reader = new BlockReader({ sizeBytes: 100, read: async () => new Uint8Array(50) });
    await expect(reader.peek(0, 1)).rejects.toThrow(/50 of 100/);
  });

  it('never takes more than its bound at once', async () => {
    const reader = new BlockReader(memorySource(bytes));
    await expect(reader.peek(0, MAX_PEEK_BYTES + 1)).rejects.toThrow(RangeError);
    await expect(reader.peek(-1, 1)).rejects.toThrow(RangeError);
    await expect(reader.peek(Number.NaN, 1)).rejects.toThrow(RangeError);
    expect(await reader.peek(bytes.length + 5, 10)).toHaveLength(0);
  });

  it('holds what lies in the block used last, and nothing else', async () => {
    const reader = new BlockReader(memorySource(bytes), 1000);
    expect(reader.held(0, 1)).toBeUndefined();
    await reader.peek(2500, 10);
    expect(reader.held(2000, 1000)).toEqual(bytes.subarray(2000, 3000));
    expect(reader.held(2999, 1)).toEqual(bytes.subarray(2999, 3000));
    expect(reader.held(2999, 2)).toBeUndefined();
    expect(reader.held(1999, 1)).toBeUndefined();
    expect(reader.held(Number.NaN, 1)).toBeUndefined();
    expect(reader.held(2000, -1)).toBeUndefined();
    // What is read ahead was not used yet.
    await reader.peek(3000, 1);
    await new Promise((done) => setTimeout(done, 1));
    expect(reader.held(2500, 10)).toBeUndefined();
    expect(reader.held(4000, 1)).toBeUndefined();
    reader.close();
    expect(reader.held(3000, 1)).toBeUndefined();
  });

  it('keeps views of one block while those of the next are read ahead', async () => {
    const reader = new BlockReader(memorySource(bytes), 512);
    await reader.peek(0, 1);
    await reader.peek(512, 1);
    const held = Array.from({ length: 16 }, (_, i) => reader.held(512 + 32 * i, 32));
    await new Promise((done) => setTimeout(done, 1));
    expect(held).toEqual(held.map((_, i) => bytes.subarray(512 + 32 * i, 544 + 32 * i)));
  });
});
