import { describe, expect, it } from 'vitest';
import { audioPorts, concat, readSourceRate, worstDifference } from '../../../test/helpers/audio.ts';
import { formatFixture } from '../../../test/helpers/bytes.ts';
import { indexOf } from '../../../test/helpers/indexes.ts';
import { box, movieHeader, NO_SAMPLES, otherTrack, soundMovie, soundTrack, u32 } from '../../../test/helpers/mp4.ts';

const ports = audioPorts();
const AUDIO = 1;
const VIDEO = 2;
const RATE_HZ = 8000;
const FRAMES = 6000;
const pcm = { type: 'sowt', channels: 1, bits: 16, rateHz: RATE_HZ, timescale: RATE_HZ };
const valueAt = (i: number) => ((i * 37) % 2001) - 1000;
const data = new Uint8Array(Int16Array.from({ length: FRAMES }, (_, i) => valueAt(i)).buffer);
const saw = Float32Array.from({ length: FRAMES }, (_, i) => valueAt(i) / 32_768);

/** Ticks at which the first fragment of each track begins, and the delay of its first picture. */
interface Starts {
  readonly sound: number;
  readonly pictures?: number;
  readonly delay?: number;
}

/**
 * A recording in one fragment: audio, preceded by video if `pictures` is set. One trun entry is one sample frame.
 */
function fragmented({ sound, pictures, delay = 0 }: Starts, frameBytes = 2): Uint8Array {
  const trex = (id: number) => box('trex', u32(0, id, 1, 1, id === AUDIO ? frameBytes : 0, 0));
  const tracks = [soundTrack(AUDIO, pcm, NO_SAMPLES), otherTrack(VIDEO, 'vide', 1000)];
  const moov = box('moov', movieHeader(1000), ...tracks, box('mvex', trex(AUDIO), trex(VIDEO)));
  const moofOf = (offset: number) => {
    const head = (id: number, ticks: number) => [box('tfhd', u32(0x020000, id)), box('tfdt', u32(0, ticks))];
    const videoRun = box('trun', u32(0xa01, 1, offset, 0, delay));
    const audioRun = box('trun', u32(1, FRAMES, offset));
    const trafs = pictures === undefined ? [] : [box('traf', ...head(VIDEO, pictures), videoRun)];
    return box('moof', box('mfhd', u32(0, 1)), ...trafs, box('traf', ...head(AUDIO, sound), audioRun));
  };
  const moof = moofOf(moofOf(0).length + 8);
  return concat(box('ftyp', u32(0x71742020, 0)), moov, moof, box('mdat', data));
}

describe('uncompressed audio in fragments with a packet for each sample frame', () => {
  it.each([2, 1])('is read completely with a stated packet size of %i bytes', async (frameBytes) => {
    const file = fragmented({ sound: 0 }, frameBytes);
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(FRAMES);
    expect(index.warning).toBeUndefined();
    expect(worstDifference(await readSourceRate(file, index, ports), saw)).toBe(0);
  });

  it('is read up to the last frame of a truncated file', async () => {
    const index = await indexOf(fragmented({ sound: 0 }).slice(0, -1001));
    expect(index.totalSamples).toBe(FRAMES - 501);
    expect(index.warning).toMatch(/is incomplete/);
  });
});

it.each([4, 8, 16])('reads packet sizes of %i bits', async (bits) => {
  // Of 4, 12 and 14 bytes; their number is odd.
  const frames = [2, 6, 7];
  const counts = Array.from({ length: 1195 }, (_, i) => frames[i % 3]!);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const sizes = new Uint8Array(Math.ceil((counts.length * bits) / 8));
  for (const [i, count] of counts.entries()) {
    const bit = i * bits;
    if (bits === 4) sizes[bit >> 3]! |= (2 * count) << (4 - (bit & 7));
    else sizes[((bit + bits) >> 3) - 1] = 2 * count;
  }
  const stts = u32(0, counts.length, ...counts.flatMap((count) => [1, count]));
  const fileWith = (offset: number) => {
    const tables = [
      box('stts', stts),
      box('stsc', u32(0, 1, 1, counts.length, 1)),
      box('stz2', u32(0, bits, counts.length), sizes),
      box('stco', u32(0, 1, offset)),
    ];
    const moov = box('moov', movieHeader(1000), soundTrack(AUDIO, pcm, tables));
    return concat(box('ftyp', u32(0x71742020, 0)), moov, box('mdat', data));
  };
  const file = fileWith(fileWith(0).length - data.length);
  const index = await indexOf(file);
  expect(index.totalSamples).toBe(total);
  expect(worstDifference(await readSourceRate(file, index, ports), saw.subarray(0, total))).toBe(0);
});

describe('several audio tracks', () => {
  /** A sawtooth and its inverse, each a track; those in `disabled` are not enabled. */
  function twoTracks(disabled: readonly number[]): Uint8Array {
    const fileWith = (offset: number) => {
      const tracks = [1, 2].map((id) => {
        const stco = box('stco', u32(0, 1, offset + (id - 1) * data.length));
        const tables = [
          box('stts', u32(0, 1, FRAMES, 1)),
          box('stsc', u32(0, 1, 1, FRAMES, 1)),
          box('stsz', u32(0, 2, FRAMES)),
        ];
        const track = soundTrack(id, pcm, [...tables, stco]);
        // The last bit of the flags of `tkhd`, the first box of a track.
        if (disabled.includes(id)) track[19]! &= ~1;
        return track;
      });
      const moov = box('moov', movieHeader(1000), ...tracks);
      return concat(
        box('ftyp', u32(0x71742020, 0)),
        moov,
        box(
          'mdat',
          concat(
            data,
            data.map((byte) => ~byte),
          ),
        ),
      );
    };
    return fileWith(fileWith(0).length - 2 * data.length);
  }
  const other = saw.map((value) => -value - 1 / 32_768);

  it.each([
    { disabled: [], expected: saw },
    { disabled: [1], expected: other },
    { disabled: [1, 2], expected: saw },
  ])('the first enabled track is read, else the first: disabled $disabled', async ({ disabled, expected }) => {
    const file = twoTracks(disabled);
    expect(worstDifference(await readSourceRate(file, await indexOf(file), ports), expected)).toBe(0);
  });
});

describe('audio in fragments that begins later than the video', () => {
  const leadOf = async (starts: Starts) => (await indexOf(fragmented(starts))).totalSamples - FRAMES;

  it('starts with silence', async () => {
    const file = fragmented({ sound: 2.5 * RATE_HZ, pictures: 0 });
    const index = await indexOf(file);
    const samples = await readSourceRate(file, index, ports);
    expect(samples).toHaveLength(2.5 * RATE_HZ + FRAMES);
    expect(samples.subarray(0, 2.5 * RATE_HZ).every((value) => value === 0)).toBe(true);
    expect(worstDifference(samples.subarray(2.5 * RATE_HZ), saw)).toBe(0);
  });

  it('starts without silence if the video is as late or later', async () => {
    expect(await leadOf({ sound: 5000 * RATE_HZ, pictures: 5_000_000 })).toBe(0);
    expect(await leadOf({ sound: 5000 * RATE_HZ })).toBe(0);
    expect(await leadOf({ sound: 0, pictures: 3000 })).toBe(0);
  });

  it('is compared with the presentation time of the first picture, not its decode time', async () => {
    expect(await leadOf({ sound: 640, pictures: 0, delay: 80 })).toBe(0);
    expect(await leadOf({ sound: RATE_HZ, pictures: 0, delay: 80 })).toBe(0.92 * RATE_HZ);
  });

  it('starts without silence above 600 s', async () => {
    expect(await leadOf({ sound: 601 * RATE_HZ, pictures: 0 })).toBe(0);
  });
});

describe('AMR with several frames in a sample', () => {
  /** Frames of 12.2 kbit/s, all of 32 bytes. */
  const frames = formatFixture('amr-nb-8000-mono.amr').slice(6);
  const movieOf = (perEntry: number, bytes: Uint8Array, frameBytes: number) => {
    const amr = { type: 'samr', channels: 1, bits: 16, rateHz: 8000, timescale: 8000 };
    const entryBytes = perEntry * frameBytes;
    const entries = Math.floor(bytes.length / entryBytes);
    return soundMovie({ ...amr, entries, entryBytes, ticksPerEntry: 160 * perEntry, data: bytes });
  };

  it('gives the same samples as with one frame', async () => {
    const frameBytes = [13, 14, 16, 18, 20, 21, 27, 32][(frames[0] >> 3) & 7];
    const bytes = frames.slice(0, 240 * frameBytes);
    const [one, ten] = [movieOf(1, bytes, frameBytes), movieOf(10, bytes, frameBytes)];
    const [oneIndex, tenIndex] = [await indexOf(one), await indexOf(ten)];
    expect(tenIndex).toMatchObject({ totalSamples: 240 * 160, codec: 'amr-nb' });
    expect(tenIndex.warning).toBeUndefined();
    const samples = await readSourceRate(ten, tenIndex, ports);
    expect(worstDifference(samples, await readSourceRate(one, oneIndex, ports))).toBe(0);
    expect(worstDifference(await readSourceRate(ten, tenIndex, ports, 20_001), samples.subarray(20_001))).toBe(0);
  });
});

it.each([
  [
    'with an unsupported coding',
    'dtsc',
    FRAMES,
    'The MP4 file holds audio in DTS, which is not supported. Another one of its',
  ],
  ['without packets', 'sowt', 0, 'An audio track of the file has no samples in it; another one'],
])('after a track %s another one is read, with a warning', async (_, type, entries, warning) => {
  const tablesOf = (count: number, offset: number) => [
    box('stts', u32(0, 1, count, 1)),
    box('stsc', u32(0, 1, 1, count, 1)),
    box('stsz', u32(0, 2, count)),
    box('stco', u32(0, 1, offset)),
  ];
  const fileWith = (offset: number) => {
    const tracks = [
      soundTrack(1, { ...pcm, type }, tablesOf(entries, offset)),
      soundTrack(2, pcm, tablesOf(FRAMES, offset)),
    ];
    return concat(box('ftyp', u32(0x71742020, 0)), box('moov', movieHeader(1000), ...tracks), box('mdat', data));
  };
  const file = fileWith(fileWith(0).length - data.length);
  const index = await indexOf(file);
  expect(index.warning).toMatch(warning);
  expect(worstDifference(await readSourceRate(file, index, ports), saw)).toBe(0);
});
