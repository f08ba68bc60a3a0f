import { describe, expect, it } from 'vitest';
import { memorySource, random } from '../../test/helpers/audio.ts';
import { type ByteSource, SeekNeeded } from './audio-ports.ts';
import { BlockReader, MAX_PEEK_BYTES, OutOfBounds } from './block-reader.ts';

const bytes = Uint8Array.from({ length: 10_000 }, (_, i) => (i * 7 + (i >> 8)) & 255);
/** Longer than all tables that are held at once. */
const large = Uint8Array.from({ length: 2_100_000 }, (_, i) => (i * 7 + (i >> 8) + (i >> 17)) & 255);

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

  it('walks forward on one stream', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 1024);
    expect(reader.readBytes).toBe(0);
    for (let offset = 0; offset < bytes.length; offset += 10) await reader.peek(offset, 30);
    expect(source.reads).toEqual([{ offset: 0 }]);
    expect(reader.readBytes).toBe(bytes.length);
  });

  it('reads through near gaps, and opens another stream after far ones, at the start of a block', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 100);
    for (const offset of [0, 490, 950, 1510]) await reader.peek(offset, 4);
    expect(source.reads).toEqual([{ offset: 0 }, { offset: 1500 }]);
    expect(reader.readBytes).toBe(1600);
  });

  it('goes back for nothing as far as it holds blocks, those that it passed too', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 100);
    for (const offset of [0, 400, 750, 100, 250, 330]) {
      expect((await reader.peek(offset, 4)).subarray(0, 4)).toEqual(bytes.subarray(offset, offset + 4));
    }
    expect(source.reads).toEqual([{ offset: 0 }]);
    for (const offset of [1100, 1500, 1900, 50]) await reader.peek(offset, 4);
    expect(source.reads).toEqual([{ offset: 0 }, { offset: 0 }]);
  });

  it('goes through a file many times, but not back and forth forever', async () => {
    const walk = async (offsets: number[], times: number) => {
      const reader = new BlockReader(memorySource(bytes), 100);
      for (let i = 0; i < times; i++) for (const offset of offsets) await reader.peek(offset, 4);
    };
    const forward = Array.from({ length: 100 }, (_, i) => 100 * i);
    await walk(forward, 50);
    const toAndFro = forward.map((offset, i) => (i % 2 ? bytes.length - 100 - offset : offset));
    await expect(walk(toAndFro, 80)).rejects.toThrow(OutOfBounds);
  });

  it('passes failures on, and tries again at the next call', async () => {
    let failures = 2;
    const source: ByteSource = {
      ...memorySource(bytes),
      async open(offset) {
        let at = offset;
        return {
          async read() {
            if (at >= 1024 && failures-- > 0) throw new Error('broken');
            at += 512;
            return bytes.subarray(at - 512, at);
          },
          close() {},
        };
      },
    };
    const reader = new BlockReader(source, 1024);
    await reader.peek(0, 1);
    await expect(reader.peek(1024, 1)).rejects.toThrow('broken');
    await expect(reader.peek(1024, 1)).rejects.toThrow('broken');
    expect((await reader.peek(1024, 4)).subarray(0, 4)).toEqual(bytes.subarray(1024, 1028));
    expect((await reader.peek(0, 4)).subarray(0, 4)).toEqual(bytes.subarray(0, 4));
  });

  it('refuses a source that gives less than it has', async () => {
    const reader = new BlockReader({ ...memorySource(bytes.subarray(0, 50)), sizeBytes: 100 });
    await expect(reader.peek(0, 1)).rejects.toThrow(/50 of 100/);
  });

  it('ends its stream', async () => {
    let open = 0;
    const good = memorySource(bytes);
    const source: ByteSource = {
      ...good,
      async open(offset) {
        open++;
        const { read } = await good.open(offset);
        return { read, close: () => open-- };
      },
    };
    const reader = new BlockReader(source, 100);
    for (const offset of [0, 5000, 100]) {
      await reader.peek(offset, 1);
      expect(open).toBe(1);
    }
    reader.close();
    expect(open).toBe(0);
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
    await reader.peek(3000, 1);
    expect(reader.held(2500, 10)).toBeUndefined();
    reader.close();
    expect(reader.held(3000, 1)).toBeUndefined();
  });

  it('keeps views of one block, and those of tables, while others are read', async () => {
    const reader = new BlockReader(memorySource(large), 4096);
    await reader.peek(8192, 1);
    const held = Array.from({ length: 16 }, (_, i) => reader.held(8192 + 32 * i, 32));
    const table = await reader.peekTable(1_000_000, 100);
    expect(held).toEqual(held.map((_, i) => large.subarray(8192 + 32 * i, 8224 + 32 * i)));
    await reader.peek(500_000, 1);
    expect(table.subarray(0, 100)).toEqual(large.subarray(1_000_000, 1_000_100));
  });
});

describe('a source that cannot go back', () => {
  it('is read through far gaps', async () => {
    const source = memorySource(bytes, false);
    const reader = new BlockReader(source, 100);
    await reader.peek(0, 4);
    expect((await reader.peek(9310, 4)).subarray(0, 4)).toEqual(bytes.subarray(9310, 9314));
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('gives again what is held; what has passed needs a source that can', async () => {
    const reader = new BlockReader(memorySource(bytes, false), 100);
    for (let offset = 0; offset < 1500; offset += 100) await reader.peek(offset, 100);
    expect((await reader.peek(750, 4)).subarray(0, 4)).toEqual(bytes.subarray(750, 754));
    await expect(reader.peek(0, 4)).rejects.toThrow(SeekNeeded);
    // Nothing is lost by that.
    expect((await reader.peek(1500, 4)).subarray(0, 4)).toEqual(bytes.subarray(1500, 1504));
  });

  it('can be opened in the middle, where another process continues', async () => {
    const reader = new BlockReader(memorySource(bytes, false), 100);
    expect((await reader.peek(5050, 4)).subarray(0, 4)).toEqual(bytes.subarray(5050, 5054));
  });
});

describe('tables', () => {
  it('are read beside the stream, each part of them once while it is in use', async () => {
    const source = memorySource(large);
    const reader = new BlockReader(source, 4096);
    await reader.peek(0, 1);
    for (let i = 0; i < 3000; i++) {
      await reader.peek(4096 * (i % 2), 1);
      for (const table of [0, 1, 2]) {
        const at = table * 600_000 + 8 * i;
        expect((await reader.peekTable(at, 8)).subarray(0, 8)).toEqual(large.subarray(at, at + 8));
      }
    }
    expect(source.reads.filter(({ length }) => length === undefined)).toEqual([{ offset: 0 }]);
    expect(source.reads.length).toBe(1 + 3);
  });

  it('have entries across the borders of what is read at once', async () => {
    const reader = new BlockReader(memorySource(large), 4096);
    for (const [at, length] of [
      [262_140, 8],
      [524_000, 70_000],
      [large.length - 5, 100],
      [large.length + 5, 100],
    ]) {
      const expected = large.subarray(at, at + length);
      expect((await reader.peekTable(at, length)).subarray(0, expected.length)).toEqual(expected);
    }
    expect(await reader.peekTable(large.length + 5, 100)).toHaveLength(0);
  });

  it('of a short file are in the block that the stream gives', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source);
    await reader.peekTable(500, 8);
    await reader.peek(0, 8);
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('of a source that cannot seek come from the blocks that are held, or need one that can', async () => {
    const source = memorySource(large, false);
    const reader = new BlockReader(source, 65_536);
    await reader.peek(0, 1);
    for (let at = 1000; at < 200_000; at += 1000) {
      expect((await reader.peekTable(at, 8)).subarray(0, 8)).toEqual(large.subarray(at, at + 8));
    }
    await reader.peek(1_500_000, 1);
    // Copied when it passed.
    expect((await reader.peekTable(1000, 8)).subarray(0, 8)).toEqual(large.subarray(1000, 1008));
    await expect(reader.peekTable(600_000, 8)).rejects.toThrow(SeekNeeded);
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('are bounded as well', async () => {
    const reader = new BlockReader(memorySource(large), 4096);
    await expect(reader.peekTable(0, MAX_PEEK_BYTES + 1)).rejects.toThrow(OutOfBounds);
    await expect(reader.peekTable(-1, 1)).rejects.toThrow(OutOfBounds);
    await expect(reader.peekTable(Number.NaN, 1)).rejects.toThrow(OutOfBounds);
    const toAndFro = async () => {
      for (let i = 0; i < 50_000; i++) await reader.peekTable(((i * 7) % 8) * 262_144, 8);
    };
    await expect(toAndFro()).rejects.toThrow(OutOfBounds);
  });
});

it('says which walks cannot come back', () => {
  const [seekable, oneWay] = [true, false].map((canSeek) => new BlockReader(memorySource(bytes, canSeek), 100));
  expect([0, 500, 5000].map((to) => seekable.isOneWay(0, to))).toEqual([false, false, false]);
  expect([0, 500, 5000].map((to) => oneWay.isOneWay(0, to))).toEqual([false, false, true]);
});
