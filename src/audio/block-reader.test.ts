import { describe, expect, it } from 'vitest';
import { memorySource, random } from '../../test/helpers/audio.ts';
import { type ByteSource, SeekNeeded } from './audio-ports.ts';
import { BlockReader, MAX_PEEK_BYTES, OutOfBounds } from './block-reader.ts';

const bytes = Uint8Array.from({ length: 10_000 }, (_, i) => (i * 7 + (i >> 8)) & 255);
/** Longer than the cache of tables. */
const large = Uint8Array.from({ length: 2_100_000 }, (_, i) => (i * 7 + (i >> 8) + (i >> 17)) & 255);

describe('BlockReader', () => {
  it('returns the bytes of the source from any offset in any order', async () => {
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

  it('reads through short gaps, and opens another stream after long ones', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 100);
    for (const offset of [0, 490, 950, 1510]) await reader.peek(offset, 4);
    expect(source.reads).toEqual([{ offset: 0 }, { offset: 1500 }]);
    expect(reader.readBytes).toBe(1600);
  });

  it('goes back without another read to cached blocks', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source, 100);
    for (const offset of [0, 400, 750, 100, 250, 330]) {
      expect((await reader.peek(offset, 4)).subarray(0, 4)).toEqual(bytes.subarray(offset, offset + 4));
    }
    expect(source.reads).toEqual([{ offset: 0 }]);
    for (const offset of [1100, 1500, 1900, 50]) await reader.peek(offset, 4);
    expect(source.reads).toEqual([{ offset: 0 }, { offset: 0 }]);
  });

  it('limits the total of reads, but allows many passes', async () => {
    const walk = async (offsets: number[], times: number) => {
      const reader = new BlockReader(memorySource(bytes), 100);
      for (let i = 0; i < times; i++) for (const offset of offsets) await reader.peek(offset, 4);
    };
    const forward = Array.from({ length: 100 }, (_, i) => 100 * i);
    await walk(forward, 50);
    const backAndForth = forward.map((offset, i) => (i % 2 ? bytes.length - 100 - offset : offset));
    await expect(walk(backAndForth, 80)).rejects.toThrow(OutOfBounds);
  });

  it('rethrows an error of the source and retries at the next call', async () => {
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

  it('throws if a source returns less than its size', async () => {
    const reader = new BlockReader({ ...memorySource(bytes.subarray(0, 50)), sizeBytes: 100 });
    await expect(reader.peek(0, 1)).rejects.toThrow(/50 of 100/);
  });

  it('closes its streams', async () => {
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

  it('rejects a request above the limit or with an invalid offset', async () => {
    const reader = new BlockReader(memorySource(bytes));
    await expect(reader.peek(0, MAX_PEEK_BYTES + 1)).rejects.toThrow(RangeError);
    await expect(reader.peek(-1, 1)).rejects.toThrow(RangeError);
    await expect(reader.peek(Number.NaN, 1)).rejects.toThrow(RangeError);
    expect(await reader.peek(bytes.length + 5, 10)).toHaveLength(0);
  });

  it('returns cached bytes only of the block used last', async () => {
    const reader = new BlockReader(memorySource(bytes), 1000);
    expect(reader.cached(0, 1)).toBeUndefined();
    await reader.peek(2500, 10);
    expect(reader.cached(2000, 1000)).toEqual(bytes.subarray(2000, 3000));
    expect(reader.cached(2999, 1)).toEqual(bytes.subarray(2999, 3000));
    expect(reader.cached(2999, 2)).toBeUndefined();
    expect(reader.cached(1999, 1)).toBeUndefined();
    expect(reader.cached(Number.NaN, 1)).toBeUndefined();
    expect(reader.cached(2000, -1)).toBeUndefined();
    await reader.peek(3000, 1);
    expect(reader.cached(2500, 10)).toBeUndefined();
    reader.close();
    expect(reader.cached(3000, 1)).toBeUndefined();
  });

  it('keeps views of a block and of tables valid during other reads', async () => {
    const reader = new BlockReader(memorySource(large), 4096);
    await reader.peek(8192, 1);
    const views = Array.from({ length: 16 }, (_, i) => reader.cached(8192 + 32 * i, 32));
    const table = await reader.peekTable(1_000_000, 100);
    expect(views).toEqual(views.map((_, i) => large.subarray(8192 + 32 * i, 8224 + 32 * i)));
    await reader.peek(500_000, 1);
    expect(table.subarray(0, 100)).toEqual(large.subarray(1_000_000, 1_000_100));
  });
});

describe('a source that cannot seek', () => {
  it('is read through long gaps', async () => {
    const source = memorySource(bytes, false);
    const reader = new BlockReader(source, 100);
    await reader.peek(0, 4);
    expect((await reader.peek(9310, 4)).subarray(0, 4)).toEqual(bytes.subarray(9310, 9314));
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('gives cached blocks again, and SeekNeeded for earlier ones', async () => {
    const reader = new BlockReader(memorySource(bytes, false), 100);
    for (let offset = 0; offset < 1500; offset += 100) await reader.peek(offset, 100);
    expect((await reader.peek(750, 4)).subarray(0, 4)).toEqual(bytes.subarray(750, 754));
    await expect(reader.peek(0, 4)).rejects.toThrow(SeekNeeded);
    // The reader is still usable.
    expect((await reader.peek(1500, 4)).subarray(0, 4)).toEqual(bytes.subarray(1500, 1504));
  });

  it('can be opened in the middle', async () => {
    const reader = new BlockReader(memorySource(bytes, false), 100);
    expect((await reader.peek(5050, 4)).subarray(0, 4)).toEqual(bytes.subarray(5050, 5054));
  });
});

describe('tables', () => {
  it('are read once, separately from the stream', async () => {
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

  it('may have entries across block borders', async () => {
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

  it('of a short file are read from the block of the stream', async () => {
    const source = memorySource(bytes);
    const reader = new BlockReader(source);
    await reader.peekTable(500, 8);
    await reader.peek(0, 8);
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('of a source that cannot seek come from cached blocks, or cause SeekNeeded', async () => {
    const source = memorySource(large, false);
    const reader = new BlockReader(source, 65_536);
    await reader.peek(0, 1);
    for (let at = 1000; at < 200_000; at += 1000) {
      expect((await reader.peekTable(at, 8)).subarray(0, 8)).toEqual(large.subarray(at, at + 8));
    }
    await reader.peek(1_500_000, 1);
    // Copied when the stream was there.
    expect((await reader.peekTable(1000, 8)).subarray(0, 8)).toEqual(large.subarray(1000, 1008));
    await expect(reader.peekTable(600_000, 8)).rejects.toThrow(SeekNeeded);
    expect(source.reads).toEqual([{ offset: 0 }]);
  });

  it('have the same limits', async () => {
    const reader = new BlockReader(memorySource(large), 4096);
    await expect(reader.peekTable(0, MAX_PEEK_BYTES + 1)).rejects.toThrow(OutOfBounds);
    await expect(reader.peekTable(-1, 1)).rejects.toThrow(OutOfBounds);
    await expect(reader.peekTable(Number.NaN, 1)).rejects.toThrow(OutOfBounds);
    const backAndForth = async () => {
      for (let i = 0; i < 50_000; i++) await reader.peekTable(((i * 7) % 8) * 262_144, 8);
    };
    await expect(backAndForth()).rejects.toThrow(OutOfBounds);
  });
});

it('isOneWay is true for long walks of a source that cannot seek', () => {
  const [seekable, oneWay] = [true, false].map((canSeek) => new BlockReader(memorySource(bytes, canSeek), 100));
  expect([0, 500, 5000].map((to) => seekable.isOneWay(0, to))).toEqual([false, false, false]);
  expect([0, 500, 5000].map((to) => oneWay.isOneWay(0, to))).toEqual([false, false, true]);
});
