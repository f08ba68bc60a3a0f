import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource, random, readSourceRate } from '../../../test/helpers/audio.ts';
import { indexAs } from '../../../test/helpers/indexes.ts';
import { box, movieHeader, NO_SAMPLES, type SoundEntryFields, soundTrack, u32 } from '../../../test/helpers/mp4.ts';
import { BlockReader } from '../block-reader.ts';
import type { RawPacket } from '../container.ts';
import { type SampleWalk, type TableFaults, walkSamples } from './mp4-samples.ts';

interface Tables {
  /** Number of packets and their duration. */
  readonly stts: [number, number][];
  /** First chunk, from 1, and packets in each. */
  readonly stsc: [number, number][];
  readonly sizes: number[];
  readonly chunks: number;
}

/** Big-endian words. */
function words(values: readonly number[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(4 * values.length));
  for (const [i, value] of values.entries()) bytes.setUint32(4 * i, value);
  return new Uint8Array(bytes.buffer);
}

/** A file that consists of tables; the packets are arbitrary bytes of it. */
function tablesFile({ stts, stsc, sizes, chunks }: Tables) {
  const parts = [
    words(stts.flat()),
    words(stsc.flatMap(([first, count]) => [first, count, 1])),
    words(sizes),
    words(Array.from({ length: chunks }, (_, chunk) => chunk % 1000)),
  ];
  const offsets = parts.map((_, i) => parts.slice(0, i).reduce((sum, { length }) => sum + length, 0));
  const walk: SampleWalk = {
    tables: {
      times: { offset: offsets[0], count: stts.length },
      runs: { offset: offsets[1], count: stsc.length },
      sizes: { offset: offsets[2], count: sizes.length, constant: 0, fieldBits: 32 },
      chunks: { offset: offsets[3], count: chunks, isLong: false },
    },
    timescale: 1000,
    pcmFrameBytes: 0,
  };
  return { bytes: concat(...parts), walk };
}

/** All packets, and `walkFrom`, which walks at least `atLeast` packets from a number. */
async function scanned(tables: Tables) {
  const { bytes, walk } = tablesFile(tables);
  const all: RawPacket[] = [];
  for await (const { packets } of walkSamples(new BlockReader(memorySource(bytes)), walk, 0, {})) {
    for (const packet of packets) all.push(packet);
  }
  const walkFrom = async (from: number, atLeast = 1) => {
    const packets: RawPacket[] = [];
    for await (const run of walkSamples(new BlockReader(memorySource(bytes)), walk, from, {})) {
      for (const packet of run.packets) packets.push(packet);
      if (packets.length >= atLeast) break;
    }
    return packets;
  };
  return { all, walkFrom };
}

const positionOf = ({ entry, offset, length, seconds }: RawPacket) => [entry, offset, length, seconds];
const times = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('a walk from any packet finds the packets of the complete walk', () => {
  it('in a table of as many runs as chunks', async () => {
    const chunks = 300_000;
    const { all, walkFrom } = await scanned({
      stts: [[chunks * 2, 20]],
      stsc: times(chunks).map((i) => [i + 1, 1 + (i % 2)]),
      sizes: Array.from({ length: chunks * 1.5 }, (_, i) => i % 7),
      chunks,
    });
    expect(all).toHaveLength(chunks * 1.5);
    const next = random(3);
    for (let round = 0; round < 30; round++) {
      const from = Math.floor(next() * all.length);
      const packets = await walkFrom(from, 3000);
      expect(packets.map(positionOf)).toEqual(all.slice(from, from + packets.length).map(positionOf));
    }
  });

  it('in one chunk of all packets', async () => {
    const sizes = Array.from({ length: 400_000 }, (_, i) => i % 3);
    const { all, walkFrom } = await scanned({
      stts: [[sizes.length, 20]],
      stsc: [[1, sizes.length]],
      sizes,
      chunks: 1,
    });
    expect(all).toHaveLength(sizes.length);
    const packets = await walkFrom(390_000);
    expect(positionOf(packets[0])).toEqual(positionOf(all[390_000]));
  });

  it('if the table of times begins with empty entries', async () => {
    const { all, walkFrom } = await scanned({
      stts: [...times(50_000).map((): [number, number] => [0, 1]), [10, 20]],
      stsc: [[1, 10]],
      sizes: Array<number>(10).fill(5),
      chunks: 1,
    });
    expect(all[9].seconds).toBeCloseTo(0.18);
    for (const from of [0, 3]) expect((await walkFrom(from)).map(positionOf)).toEqual(all.slice(from).map(positionOf));
  });
});

it('ignores times after 200,000 empty entries', async () => {
  const { all } = await scanned({
    stts: [[5, 20], ...times(300_000).map((): [number, number] => [0, 1]), [5, 20]],
    stsc: [[1, 10]],
    sizes: Array<number>(10).fill(5),
    chunks: 1,
  });
  expect(all.map(({ seconds }) => seconds !== undefined)).toEqual(times(10).map((i) => i < 5));
});

describe('empty entries of the table of chunks', () => {
  const withEmpty = (empty: number): Tables => ({
    stts: [[20, 20]],
    stsc: [[1, 10], ...times(empty).map((): [number, number] => [2, 0]), [2, 10]],
    sizes: Array<number>(20).fill(5),
    chunks: 2,
  });

  it('are skipped', async () => {
    const { all, walkFrom } = await scanned(withEmpty(50));
    expect(all).toHaveLength(20);
    expect(await walkFrom(15)).toHaveLength(5);
  });

  it('end the walk after 100 in a row', async () => {
    expect((await scanned(withEmpty(200))).all).toHaveLength(10);
  });
});

it('ends when the packets of another description have more bytes than the file', async () => {
  const chunks = 10_000;
  const { bytes, walk } = tablesFile({ stts: [[1, 20]], stsc: [[1, 1000]], sizes: [], chunks });
  const sizes = { ...walk.tables.sizes, constant: 1, count: chunks * 1000 };
  const found: TableFaults = {};
  const excluding: SampleWalk = { ...walk, tables: { ...walk.tables, sizes }, excludedDescriptions: [1] };
  for await (const { packets } of walkSamples(new BlockReader(memorySource(bytes)), excluding, 0, found)) {
    expect(packets).toEqual([]);
  }
  expect(found.tableEnd).toBeGreaterThan(0);
  expect(found.tableEnd).toBeLessThanOrEqual(bytes.length);
});

const ports = audioPorts();
const dOps = box('dOps', Uint8Array.of(0, 1, 0, 0, 0, 0, 0xbb, 0x80, 0, 0, 0));
const opus: SoundEntryFields = { type: 'Opus', channels: 1, bits: 16, rateHz: 48000, timescale: 48000, boxes: dOps };
const head = box('ftyp', u32(0x69736f6d, 0));

/** Packets of one byte: ten of 2.5 ms of silence, and the others without a sample. */
const PACKETS = 2000;
const data = new Uint8Array(PACKETS).fill(0x03).fill(0xe0, 0, 10);

/** 2000 packets, repeated in the same bytes `times` times by the table of chunks or by fragments. */
const files: Readonly<Record<string, (times: number) => Uint8Array>> = {
  tables(times) {
    const mdat = box('mdat', data);
    const tables = [
      box('stts', u32(0, 0)),
      box('stsc', u32(0, 1, 1, PACKETS, 1)),
      box('stsz', u32(0, 1, times * PACKETS)),
      box('stco', u32(0, times, ...new Array<number>(times).fill(head.length + 8))),
    ];
    return concat(head, mdat, box('moov', movieHeader(1000), soundTrack(1, opus, tables)));
  },
  fragments(times) {
    const trex = box('mvex', box('trex', u32(0, 1, 1, 120, 1, 0)));
    const index = concat(head, box('moov', movieHeader(1000), soundTrack(1, opus, NO_SAMPLES), trex));
    const run = box('trun', u32(1, PACKETS, 0));
    const header = box('tfhd', u32(1, 1, 0, index.length + 8));
    const runs = new Array<Uint8Array>(times).fill(run);
    return concat(index, box('mdat', data), box('moof', box('mfhd', u32(0, 1)), box('traf', header, ...runs)));
  },
};

describe.each(Object.keys(files))('packets in the same bytes, in %s', (kind) => {
  it('are read up to twice', async () => {
    for (const times of [1, 2]) {
      const index = await indexAs('mp4', files[kind](times));
      expect(index.warning).toBeUndefined();
      expect(index.totalSamples).toBe(times * 10 * 120);
    }
  });

  it('are left out after twice the size of the file, with a warning', async () => {
    const file = files[kind](1000);
    const index = await indexAs('mp4', file);
    expect(index.warning).toBe('The MP4 file plays the same bytes repeatedly; the rest was left out.');
    // All packets within twice the bytes of the file.
    expect(index.durationSeconds).toBeLessThan(1);
    const started = performance.now();
    expect(await readSourceRate(file, index, ports)).toHaveLength(index.totalSamples);
    expect(performance.now() - started).toBeLessThan(5000);
  });
});
