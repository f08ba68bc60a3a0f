import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource, readSourceRate, worstDifference } from '../../../test/helpers/audio.ts';
import { find, formatFixture } from '../../../test/helpers/bytes.ts';
import { indexAs, indexOf } from '../../../test/helpers/indexes.ts';
import { box, type EditEntry, editList, u32 } from '../../../test/helpers/mp4.ts';
import { BlockReader } from '../block-reader.ts';
import { openEnded, parseEdits } from './mp4-boxes.ts';
import { walkFragments } from './mp4-fragments.ts';

const ports = audioPorts();
const fragments = formatFixture('mp4-fragments-aac-48000-stereo.mp4');
const mixed = formatFixture('mp4-tables-and-fragments-aac-32000-mono.mp4');
const RATE_HZ = 48000;

/** Positions of the top-level boxes of a type. */
function positionsOf(file: Uint8Array, type: string): number[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const positions: number[] = [];
  for (let at = 0; at + 8 <= file.length; at += view.getUint32(at)) {
    if (find(file, type, at) === at + 4) positions.push(at);
    if (!Buffer.from(file.buffer, file.byteOffset).includes(type, at + 8)) break;
  }
  return positions;
}

const moofs = positionsOf(fragments, 'moof');

/** The file with another length in the header of the box at `at`. */
function withSize(file: Uint8Array, at: number, size: number): Uint8Array {
  const out = file.slice();
  new DataView(out.buffer).setUint32(at, size);
  return out;
}

describe('an index with samples and fragments after it', () => {
  it('are one recording', async () => {
    const index = await indexAs('mp4', mixed);
    expect(index.warning).toBeUndefined();
    const sizes = find(mixed, 'stsz') + 12;
    expect(new DataView(mixed.buffer, mixed.byteOffset).getUint32(sizes)).toBe(16);
    expect(index.durationSeconds).toBeGreaterThan(3);
    const samples = await readSourceRate(mixed, index, ports);
    expect(samples).toHaveLength(index.totalSamples);
    for (let at = 3200; at + 6400 < 3 * 32_000; at += 6400) {
      expect(samples.subarray(at, at + 6400).some((value) => Math.abs(value) > 0.001)).toBe(true);
    }
  });

  it('give the same samples from any start', async () => {
    const index = await indexAs('mp4', mixed);
    const whole = await readSourceRate(mixed, index, ports);
    for (const from of [10_000, 16_384, 16_385, 40_000, 90_000]) {
      expect(worstDifference(await readSourceRate(mixed, index, ports, from), whole.subarray(from))).toBe(0);
    }
  });

  it('are used up to the end if truncated in the tables or in the fragments', async () => {
    for (const share of [0.1, 0.6]) {
      const index = await indexOf(mixed.slice(0, mixed.length * share));
      expect(index.warning).toBe('The MP4 file is incomplete; the available part was used.');
      expect(index.durationSeconds / 3).toBeCloseTo(share, 0);
    }
  });

  it('extend an edit list that ends with the samples of the index', () => {
    const list = (...entries: readonly EditEntry[]) => parseEdits(editList(...entries), 1000);
    const lastOf = (edits: ReturnType<typeof list>, duration: number) => {
      const open = edits && openEnded(edits, { timescale: 32_000, duration });
      return open?.kind === 'edits' ? open.edits.at(-1)?.duration : undefined;
    };
    expect(lastOf(list([480, 1024]), 16_384)).toBe(0);
    expect(lastOf(list([400, 1024]), 16_384)).toBe(400);
    expect(lastOf(list([100, 0xffffffff], [512, 0]), 16_384)).toBe(0);
    expect(lastOf(list([480, 1024]), 0)).toBe(480);
  });

  it('are read to the end with an edit list for the samples of the index', async () => {
    const edts = box('edts', box('elst', editList([480, 1024])));
    // The list replaces a part of the tags, so that no offset moves.
    const [list, tags, media] = [find(mixed, 'mdia') - 4, find(mixed, 'udta') - 4, find(mixed, 'mdat') - 4];
    const rest = box('free', new Uint8Array(media - tags - edts.length - 8));
    const file = concat(mixed.subarray(0, list), edts, mixed.subarray(list, tags), rest, mixed.subarray(media));
    const trak = find(file, 'trak') - 4;
    const edited = withSize(file, trak, new DataView(file.buffer).getUint32(trak) + edts.length);
    const [index, all] = [await indexOf(edited), await indexOf(mixed)];
    expect(index.warning).toBeUndefined();
    expect(index.totalSamples).toBe(all.totalSamples - 1024);
    const samples = await readSourceRate(mixed, all, ports);
    expect(worstDifference(await readSourceRate(edited, index, ports), samples.subarray(1024))).toBe(0);
  });
});

describe('damaged fragments', () => {
  const warningOf = async (file: Uint8Array) => (await indexOf(file)).warning;

  it('cause a warning if the file is truncated', async () => {
    const cut = 'The MP4 file is incomplete; the available part was used.';
    expect(await warningOf(fragments.slice(0, -3000))).toBe(cut);
    expect(await warningOf(fragments.slice(0, moofs[3] + 20))).toBe(cut);
    expect(await warningOf(fragments.slice(0, moofs[3] + 200))).toBe(cut);
  });

  it('are skipped for an impossible box length', async () => {
    const whole = await indexOf(fragments);
    const good = await readSourceRate(fragments, whole, ports);
    for (const size of [3, 0x7fffffff]) {
      for (const type of ['moof', 'mdat']) {
        const file = withSize(fragments, positionsOf(fragments, type)[2], size);
        const index = await indexOf(file);
        expect(index.warning).toMatch(/Parts of the MP4 file are damaged and were left out\./);
        expect(index.totalSamples).toBe(whole.totalSamples);
        const samples = await readSourceRate(file, index, ports);
        expect(worstDifference(samples.subarray(RATE_HZ * 1.5), good.subarray(RATE_HZ * 1.5))).toBeLessThan(0.05);
      }
    }
  });

  it('are skipped for a span of zeros', async () => {
    const whole = await indexOf(fragments);
    const file = fragments.slice().fill(0, moofs[2], moofs[2] + 500);
    const index = await indexOf(file);
    expect(index.warning).toMatch(/Parts of the MP4 file are damaged and were left out\./);
    expect(index.totalSamples).toBe(whole.totalSamples);
    const atEnd = whole.totalSamples - RATE_HZ / 4;
    const good = await readSourceRate(fragments, whole, ports, atEnd);
    expect(worstDifference(await readSourceRate(file, index, ports, atEnd), good)).toBeLessThan(0.05);
    expect(await indexOf(fragments.slice().fill(0, moofs[0], moofs[0] + 500))).toMatchObject({ format: 'mp4' });
  });

  it('end at a packet outside of the file, and later fragments are read', async () => {
    const sizes = find(fragments, 'trun', moofs[2]) + 16;
    const file = withSize(fragments, sizes + 4, 0x7fffffff);
    const index = await indexOf(file);
    expect(index.warning).toMatch(/damaged/);
    expect(index.totalSamples).toBe((await indexOf(fragments)).totalSamples);
  });

  it('are not reported for tags and padding at the end', async () => {
    expect(await warningOf(concat(fragments, new TextEncoder().encode(`TAG${' '.repeat(125)}`)))).toBeUndefined();
    expect(await warningOf(concat(fragments, new Uint8Array(10_000)))).toBeUndefined();
  });
});

describe('concatenated MP4 files', () => {
  it('end with the first file and a warning', async () => {
    const plain = formatFixture('mp4-aac-16000-mono.m4a');
    for (const [first, second] of [
      [plain, plain],
      [plain, fragments],
      [mixed, mixed],
    ]) {
      const [alone, index] = [await indexOf(first), await indexOf(concat(first, second))];
      expect(index.totalSamples).toBe(alone.totalSamples);
      expect(index.warning).toBe('The MP4 file contains a second recording after the first; it was left out.');
    }
  });

  it('are one recording if the fragments have relative positions', async () => {
    const index = await indexOf(concat(fragments, fragments));
    expect(index.totalSamples).toBeGreaterThan(1.9 * (await indexOf(fragments)).totalSamples);
  });
});

it('reads a track fragment whose offset continues from the previous one, with flags of the first packet', async () => {
  const fileWith = (firstOffset: number) => {
    const pictures = box('traf', box('tfhd', u32(0, 1)), box('trun', u32(0x201, 2, firstOffset, 10, 20)));
    const sound = [box('tfhd', u32(0, 2)), box('tfdt', u32(0, 500)), box('trun', u32(0x205, 2, -5, 0x02000000, 7, 9))];
    const moof = box('moof', box('mfhd', u32(0, 1)), pictures, box('traf', ...sound));
    return { moof, file: concat(moof, box('mdat', new Uint8Array(64))) };
  };
  const data = fileWith(0).moof.length + 8;
  const defaults = { description: 1, duration: 100, size: 0 };
  const walk = { trackId: 2, timescale: 1000, defaults, firstByte: 0, pcmFrameBytes: 0, tabled: 0 };
  const packets = [];
  const reader = new BlockReader(memorySource(fileWith(data).file));
  for await (const run of walkFragments(reader, walk, 0, {})) packets.push(...run.packets);
  expect(packets).toMatchObject([
    { offset: data + 25, length: 7, seconds: 0.5 },
    { offset: data + 32, length: 9, seconds: 0.6 },
  ]);
});
