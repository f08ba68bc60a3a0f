import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  random,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../../test/helpers/audio.ts';
import { formatFixture } from '../../../../test/helpers/bytes.ts';
import { indexAs } from '../../../../test/helpers/indexes.ts';
import { type EditEntry, EMPTY, editList, u32, withEdits } from '../../../../test/helpers/mp4.ts';
import { BlockReader } from '../../block-reader.ts';
import { outputSampleCount, probeAudio } from '../../index.ts';
import type { PacketWalk } from '../../packets/packet.ts';
import { samplesOf } from '../../packets/pieces.ts';
import { scanPackets } from '../../packets/scan.ts';
import { type EditList, parseEdits, playEdits } from './edits.ts';

const ports = audioPorts();
const plain = formatFixture('mp4-aac-44100-stereo.m4a');
const RATE = 44100;
const DELAY = 1024;
const indexOf = (file: Uint8Array) => indexAs('mp4', file);

/** All that is decoded of the media: the same file, with an edit that begins at its first packet. */
async function mediaOf(file: Uint8Array): Promise<Float32Array> {
  const whole = withEdits(file, [0, 0]);
  return readSourceRate(whole, await indexOf(whole), ports);
}

describe('a list of several pieces', () => {
  const second = Math.round(0.75 * RATE);
  const cases: [string, EditEntry[], (media: Float32Array) => Float32Array[]][] = [
    [
      'a part cut out',
      [
        [500, DELAY],
        [500, DELAY + 55_125],
      ],
      (media) => [media.subarray(DELAY, DELAY + 22_050), media.subarray(DELAY + 55_125, DELAY + 55_125 + 22_050)],
    ],
    [
      'pieces in another order, one of them twice',
      [
        [750, 40_000],
        [250, DELAY],
        [250, DELAY],
      ],
      (media) => [
        media.subarray(40_000, 40_000 + second),
        media.subarray(DELAY, DELAY + 11_025),
        media.subarray(DELAY, DELAY + 11_025),
      ],
    ],
    [
      'silence in front, between and behind',
      [
        [100, EMPTY],
        [250, DELAY],
        [1500, EMPTY],
        [250, 60_000],
        [300, EMPTY],
      ],
      (media) => [
        new Float32Array(4410),
        media.subarray(DELAY, DELAY + 11_025),
        new Float32Array(66_150),
        media.subarray(60_000, 60_000 + 11_025),
        new Float32Array(13_230),
      ],
    ],
    [
      'a piece that lasts longer than the media, and one behind its end',
      [
        [1000, 80_000],
        [200, 900_000],
        [100, DELAY],
      ],
      (media) => [
        media.subarray(80_000),
        new Float32Array(44_100 - (media.length - 80_000) + 8820),
        media.subarray(DELAY, DELAY + 4410),
      ],
    ],
    [
      'the last piece up to the end of the media',
      [
        [250, DELAY],
        [0, 50_000],
      ],
      (media) => [media.subarray(DELAY, DELAY + 11_025), media.subarray(50_000)],
    ],
  ];
  it.each(cases)('%s', async (_name, entries, expected) => {
    const file = withEdits(plain, ...entries);
    const index = await indexOf(file);
    const all = expected(await mediaOf(plain)).flatMap((part) => [...part]);
    expect(index.warning).toBeUndefined();
    expect(index.totalSamples).toBe(all.length);
    const whole = await readSourceRate(file, index, ports);
    expect(worstDifference(whole, Float32Array.from(all))).toBe(0);
    const next = random(entries.length);
    for (let i = 0; i < 20; i++) {
      const start = Math.floor(next() * all.length);
      expect(worstDifference(await readSourceRate(file, index, ports, start), whole.subarray(start))).toBe(0);
    }
  });

  it('any part of it, at 16 kHz, has the samples of the whole', async () => {
    const next = random(11);
    for (let round = 0; round < 10; round++) {
      const entries = Array.from({ length: 2 + Math.floor(next() * 30) }, (): EditEntry => {
        return [Math.floor(next() * 200), next() < 0.2 ? EMPTY : Math.floor(next() * 90_000)];
      });
      const file = withEdits(plain, [50, DELAY], ...entries);
      const index = await indexOf(file);
      const count = outputSampleCount(index);
      const whole = await readRange(file, index, ports, 0, count);
      for (let i = 0; i < 5; i++) {
        const start = Math.floor(next() * count);
        const end = Math.min(count, start + 4000);
        expect(worstDifference(await readRange(file, index, ports, start, end), whole.subarray(start, end))).toBe(0);
      }
    }
  });

  it('in fragments too', async () => {
    const fragments = formatFixture('mp4-fragments-aac-48000-stereo.mp4');
    const media = await mediaOf(fragments);
    const file = withEdits(fragments, [500, 60_000], [250, EMPTY], [500, DELAY]);
    const index = await indexOf(file);
    const whole = await readSourceRate(file, index, ports);
    expect(whole).toHaveLength(60_000);
    expect(worstDifference(whole.subarray(0, 24_000), media.subarray(60_000, 84_000))).toBe(0);
    expect(worstDifference(whole.subarray(36_000), media.subarray(DELAY, DELAY + 24_000))).toBe(0);
    expect(worstDifference(await readSourceRate(file, index, ports, 50_000), whole.subarray(50_000))).toBe(0);
  });

  it('rounding to the clock of the movie does not add up', async () => {
    const file = withEdits(plain, ...Array.from({ length: 300 }, (): EditEntry => [3, DELAY]), [0, DELAY]);
    const index = await indexOf(file);
    const rest = (await mediaOf(plain)).length - DELAY;
    expect(index.totalSamples).toBe(Math.round(0.9 * RATE) + rest);
  });
});

describe('a list that cannot be followed is said to be so, and everything is read', () => {
  const twice: EditEntry[] = [
    [500, DELAY],
    [500, 60_000],
  ];
  it.each<[string, EditEntry[], RegExp]>([
    ['at twice the speed', [[500, DELAY, 0x20000]], /plays parts of it at another speed/],
    ['backwards', [[500, DELAY, 0xffff0000]], /plays parts of it at another speed/],
    ['a hold among others', [...twice, [500, 60_000, 0]], /plays parts of it at another speed/],
    ['nothing but silence', [[500, EMPTY]], /plays nothing/],
    ['a time before the beginning', [...twice, [500, 0xffffff00]], /is damaged/],
    ['too many entries', Array.from({ length: 1001 }, () => twice[0]), /has 1001 entries, more than 1000/],
    ['days of it', Array.from({ length: 50 }, (): EditEntry => [0xffffffff, EMPTY]).concat(twice), /longer than 48 h/],
  ])('%s', async (_name, entries, message) => {
    const index = await indexOf(withEdits(plain, ...entries));
    expect(index.warning).toMatch(message);
    expect(index.warning).toMatch(
      /^The edit list of the MP4 file .*; it was not followed, and all of the sound was read\.$/,
    );
    expect(index.totalSamples).toBe(DELAY + 88_200);
  });

  it('a rate of 0 in the only entry is a field left empty', async () => {
    const index = await indexOf(withEdits(plain, [2000, DELAY, 0]));
    expect(index).toMatchObject({ pieces: [{ position: DELAY, samples: 88_200 }] });
    expect(index.warning).toBeUndefined();
  });

  it('to and fro more often than is worth the work', () => {
    // A decoder can be opened at the start alone: each jump there and back decodes the hour in between.
    const seek = { deltas: [0, 0] };
    const media = { timescale: 1000, rateHz: 8000, endPosition: 3600 * 8000, roundedSamples: 0, seek, emptyPackets: 0 };
    const entry = (mediaTime: number) => ({ mediaTime, duration: 10 });
    const list = (times: number[]): EditList & { kind: 'edits' } => {
      return { kind: 'edits', movieTimescale: 1000, edits: times.map(entry) };
    };
    expect(playEdits(list([0, 3_500_000, 0]), media)).toHaveLength(3);
    expect(playEdits(list([0, 3_500_000, 0, 3_500_000, 0, 3_500_000]), media)).toEqual({
      fault: 'jumps to and fro too often',
    });
  });
});

it('several pieces are not played where there are very many empty packets: each piece might pass them all', async () => {
  async function* walk(): PacketWalk {
    const empty = { offset: 0, length: 0, bytes: new Uint8Array(0) };
    yield { packets: Array.from({ length: 20_000 }, () => empty) };
    yield { packets: Array.from({ length: 100 }, () => ({ offset: 0, length: 1, bytes: Uint8Array.of(0) })) };
  }
  const counter = { headBytes: 1, canRestart: true, count: (_: Uint8Array, length: number) => 480 * length };
  const scan = await scanPackets(new BlockReader(memorySource(new Uint8Array(1))), walk(), counter, 48_000);
  expect(scan).toMatchObject({ packets: 20_100, emptyPackets: 20_000, endPosition: 48_000 });
  const { seek, emptyPackets, endPosition } = scan;
  const media = { timescale: 48_000, rateHz: 48_000, endPosition, roundedSamples: 0, seek, emptyPackets };
  const list = (...times: number[]): EditList & { kind: 'edits' } => {
    return { kind: 'edits', movieTimescale: 1000, edits: times.map((mediaTime) => ({ mediaTime, duration: 100 })) };
  };
  expect(playEdits(list(0, 20_000), media)).toEqual({ fault: 'is made for damaged sound' });
  expect(playEdits(list(0, 20_000), { ...media, emptyPackets: 100 })).toHaveLength(2);
  expect(playEdits(list(20_000), media)).toHaveLength(1);
});

it('a last piece that ends within a tick of the movie in front of the end goes on to it', () => {
  const media = {
    timescale: 44_100,
    rateHz: 44_100,
    endPosition: 88_200,
    roundedSamples: 0,
    seek: { deltas: [0, 0] },
    emptyPackets: 0,
  };
  const played = (duration: number) =>
    playEdits({ kind: 'edits', edits: [{ mediaTime: 0, duration }], movieTimescale: 1000 }, media);
  expect(played(2000)).toEqual([{ position: 0, samples: 88_200 }]);
  expect(played(1999)).toEqual([{ position: 0, samples: 88_200 }]);
  expect(played(1998)).toEqual([{ position: 0, samples: 88_112 }]);
});

describe('lists', () => {
  it('of both versions', () => {
    const edits = [
      { mediaTime: -1, duration: 500 },
      { mediaTime: 1024, duration: 3000 },
    ];
    const list = { kind: 'edits', edits, movieTimescale: 1000 };
    expect(parseEdits(editList([500, EMPTY], [3000, 1024]), 1000)).toEqual(list);
    const long = u32(0x01000000, 2, 0, 500, EMPTY, EMPTY, 0x10000, 0, 3000, 0, 1024, 0x10000);
    expect(parseEdits(long, 1000)).toEqual(list);
  });

  it('without an entry or a clock say nothing', () => {
    expect(parseEdits(u32(0, 0), 1000)).toBeUndefined();
    expect(parseEdits(u32(0), 1000)).toBeUndefined();
    expect(parseEdits(editList([500, 0]), 0)).toBeUndefined();
  });

  it('whatever the bytes: an answer, and pieces that add up to no more than was stated', () => {
    const next = random(77);
    for (let round = 0; round < 5000; round++) {
      const count = Math.floor(next() * 20);
      const bytes = concat(
        u32(next() < 0.5 ? 0 : 0x01000000, next() < 0.8 ? count : Math.floor(next() * 2 ** 32)),
        Uint8Array.from({ length: count * (next() < 0.5 ? 12 : 20) }, () =>
          next() < 0.7 ? 0 : Math.floor(next() * 256),
        ),
      );
      const timescale = Math.floor(next() * 90_000);
      const list = parseEdits(bytes, timescale);
      if (list?.kind !== 'edits') continue;
      const seek = { deltas: [0, 0] };
      const media = {
        timescale: 48_000,
        rateHz: 48_000,
        endPosition: 1_000_000,
        roundedSamples: 0,
        seek,
        emptyPackets: 0,
      };
      const played = playEdits(list, media);
      if ('fault' in played) continue;
      expect(played.every(({ samples }) => Number.isSafeInteger(samples) && samples > 0)).toBe(true);
      expect(played.every(({ position = 0, samples }) => position >= 0 && samples <= 48 * 3600 * 48_000)).toBe(true);
      expect(samplesOf(played)).toBeLessThanOrEqual(48 * 3600 * 48_000 + 1_000_000);
    }
  });

  it('cut short in the file', async () => {
    const file = withEdits(plain, [500, DELAY], [500, 60_000]);
    const at = Buffer.from(file).indexOf('elst') + 8;
    for (const count of [3, 1000, 0xffffffff]) {
      new DataView(file.buffer, file.byteOffset).setUint32(at, count);
      expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({
        ok: true,
        value: { warning: expect.stringMatching(/edit list .* (is cut short|has \d+ entries)/) },
      });
    }
  });
});
