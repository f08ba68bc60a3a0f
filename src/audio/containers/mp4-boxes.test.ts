import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  outputSampleCount,
  probeAudio,
  random,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture, patched } from '../../../test/helpers/bytes.ts';
import { indexAs, indexOf } from '../../../test/helpers/indexes.ts';
import { box, type EditEntry, EMPTY, editList, soundMovie, u32, withEdits } from '../../../test/helpers/mp4.ts';
import type { PartStart } from '../container.ts';
import { SpanPlayer } from '../playback.ts';
import { parseEdits, playEdits } from './mp4-boxes.ts';

const ports = audioPorts();

/** A 16-bit sawtooth. */
const valueAt = (i: number) => ((i * 37) % 2001) - 1000;

/** Samples of a width, each with a 16-bit sawtooth in its upper bits. */
function saw(frames: number, bytesPerSample: number, isBigEndian: boolean): Uint8Array {
  const bytes = new Uint8Array(frames * bytesPerSample);
  for (let i = 0; i < frames; i++) {
    const value = [valueAt(i) >> 8, valueAt(i) & 255, ...Array<number>(bytesPerSample - 2).fill(0)];
    bytes.set(isBigEndian ? value : value.reverse(), i * bytesPerSample);
  }
  return bytes;
}

const sawSamples = (frames: number) => Float32Array.from({ length: frames }, (_, i) => valueAt(i) / 32_768);

describe('uncompressed audio in MP4', () => {
  it.each([
    ['entries of one sample frame', 1, 2],
    ['entries of one sample frame with a stated size of 1 byte', 1, 1],
    ['entries of 100 sample frames', 100, 200],
    ['entries of 5000 sample frames', 5000, 10_000],
  ])('%s', async (_name, framesPerEntry, entryBytes) => {
    const entries = 20_000 / framesPerEntry;
    const movie = { type: 'sowt', channels: 1, bits: 16, rateHz: 8000, timescale: 8000, entries, entryBytes };
    const file = soundMovie({ ...movie, ticksPerEntry: framesPerEntry, data: saw(20_000, 2, false) });
    const index = await indexOf(file);
    expect(index).toMatchObject({ totalSamples: 20_000, sampleRateHz: 8000 });
    expect(index.warning).toBeUndefined();
    expect(worstDifference(await readSourceRate(file, index, ports), sawSamples(20_000))).toBe(0);
    expect(worstDifference(await readSourceRate(file, index, ports, 7001), sawSamples(20_000).subarray(7001))).toBe(0);
  });

  it.each([
    ['twos', 16, true],
    ['sowt', 16, false],
    ['twos', 24, true],
    ['sowt', 24, false],
    ['twos', 32, true],
    ['sowt', 32, false],
  ])('%s of %i bits', async (type, bits, isBigEndian) => {
    const data = saw(3000, bits / 8, isBigEndian);
    const movie = { type, channels: 1, bits, rateHz: 8000, timescale: 8000, ticksPerEntry: 1 };
    const file = soundMovie({ ...movie, entries: 3000, entryBytes: bits / 8, data });
    const index = await indexOf(file);
    expect(worstDifference(await readSourceRate(file, index, ports), sawSamples(3000))).toBe(0);
  });
});

describe('a sample rate of 0 in the sample entry', () => {
  it('is replaced by the timescale', async () => {
    const pcm = box('pcmC', u32(0), Uint8Array.of(1, 16));
    const movie = { type: 'ipcm', channels: 1, bits: 16, rateHz: 0, timescale: 96_000, boxes: pcm, ticksPerEntry: 1 };
    const file = soundMovie({ ...movie, entries: 9600, entryBytes: 2, data: saw(9600, 2, false) });
    expect(await indexOf(file)).toMatchObject({ sampleRateHz: 96_000, totalSamples: 9600 });
  });

  it('is rejected if the timescale is 0 too', async () => {
    const movie = { type: 'sowt', channels: 1, bits: 16, rateHz: 0, timescale: 0, entries: 100, entryBytes: 2 };
    const file = soundMovie({ ...movie, ticksPerEntry: 1, data: saw(100, 2, false) });
    expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({ ok: false });
  });

  it('is replaced by the rate of the FLAC header, as are the channels', async () => {
    const flac = formatFixture('mp4-flac-16000-mono.mp4');
    // Nine channels and no rate: bytes 20 and 28 after the name.
    const file = patched(patched(flac, 'fLaC', [0, 9], 20), 'fLaC', [0, 0], 28);
    const [good, index] = [await indexOf(flac), await indexOf(file)];
    expect(index).toEqual(good);
    const samples = await readSourceRate(file, index, ports);
    expect(worstDifference(samples, await readSourceRate(flac, good, ports))).toBe(0);
  });
});

const plain = formatFixture('mp4-aac-44100-stereo.m4a');
const RATE = 44100;
const DELAY = 1024;
const mp4IndexOf = (file: Uint8Array) => indexAs('mp4', file);

/** All decoded samples of the media: the same file, with an edit that begins at its first packet. */
async function mediaOf(file: Uint8Array): Promise<Float32Array> {
  const unedited = withEdits(file, [0, 0]);
  return readSourceRate(unedited, await mp4IndexOf(unedited), ports);
}

describe('an edit list with several entries', () => {
  const cases: [string, EditEntry[], (media: Float32Array) => Float32Array[]][] = [
    [
      'a cut in the middle',
      [
        [500, DELAY],
        [500, DELAY + 55_125],
      ],
      (media) => [media.subarray(DELAY, DELAY + 22_050), media.subarray(DELAY + 55_125, DELAY + 55_125 + 22_050)],
    ],
    [
      'silence before, between and after',
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
      'an entry that is longer than the media, silence, and an entry after its end',
      [
        [1000, 80_000],
        [200, EMPTY],
        [200, 900_000],
      ],
      (media) => [media.subarray(80_000), new Float32Array(44_100 - (media.length - 80_000) + 8820)],
    ],
    [
      'a last entry up to the end of the media',
      [
        [250, DELAY],
        [0, 50_000],
      ],
      (media) => [media.subarray(DELAY, DELAY + 11_025), media.subarray(50_000)],
    ],
  ];
  it.each(cases)('plays %s', async (_name, entries, expected) => {
    const file = withEdits(plain, ...entries);
    const index = await mp4IndexOf(file);
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

  it('gives the same samples at 16 kHz for any range', async () => {
    const next = random(11);
    for (let round = 0; round < 10; round++) {
      let time = DELAY + 0.05 * RATE;
      const entries = Array.from({ length: 2 + Math.floor(next() * 30) }, (): EditEntry => {
        const ms = Math.floor(next() * 200);
        if (next() < 0.2) return [ms, EMPTY];
        time += Math.floor(next() * 4000);
        const begin = time;
        time += Math.ceil((ms * RATE) / 1000);
        return [ms, begin];
      });
      const file = withEdits(plain, [50, DELAY], ...entries);
      const index = await mp4IndexOf(file);
      expect(index.warning).toBeUndefined();
      const count = outputSampleCount(index);
      const whole = await readRange(file, index, ports, 0, count);
      for (let i = 0; i < 5; i++) {
        const start = Math.floor(next() * count);
        const end = Math.min(count, start + 4000);
        expect(worstDifference(await readRange(file, index, ports, start, end), whole.subarray(start, end))).toBe(0);
      }
    }
  });

  it('is followed in fragments', async () => {
    const fragments = formatFixture('mp4-fragments-aac-48000-stereo.mp4');
    const media = await mediaOf(fragments);
    const file = withEdits(fragments, [500, DELAY], [250, EMPTY], [500, 60_000]);
    const index = await mp4IndexOf(file);
    const whole = await readSourceRate(file, index, ports);
    expect(whole).toHaveLength(60_000);
    expect(worstDifference(whole.subarray(0, 24_000), media.subarray(DELAY, DELAY + 24_000))).toBe(0);
    expect(whole.subarray(24_000, 36_000).every((value) => value === 0)).toBe(true);
    expect(worstDifference(whole.subarray(36_000), media.subarray(60_000, 84_000))).toBe(0);
    expect(worstDifference(await readSourceRate(file, index, ports, 50_000), whole.subarray(50_000))).toBe(0);
  });

  it('does not accumulate rounding errors of the movie clock', async () => {
    // Of 3 ms each, 132 samples: 0.3 fewer than in 3 ms.
    const entries = Array.from({ length: 300 }, (_, i): EditEntry => [3, DELAY + 140 * i]);
    const file = withEdits(plain, ...entries, [0, 60_000]);
    const index = await mp4IndexOf(file);
    const rest = (await mediaOf(plain)).length - 60_000;
    expect(index.totalSamples).toBe(Math.round(0.9 * RATE) + rest);
  });
});

describe('an edit list is ignored with a warning', () => {
  const twoEntries: EditEntry[] = [
    [500, DELAY],
    [500, 60_000],
  ];
  it.each<[string, EditEntry[], RegExp]>([
    ['for playback at twice the speed', [[500, DELAY, 0x20000]], /changes the playback speed/],
    ['for playback backwards', [[500, DELAY, 0xffff0000]], /changes the playback speed/],
    ['for a frozen picture', [...twoEntries, [500, 60_000, 0]], /changes the playback speed/],
    [
      'for entries in another order',
      [
        [750, 40_000],
        [250, DELAY],
      ],
      /jumps back/,
    ],
    [
      'for a repeated entry',
      [
        [250, DELAY],
        [250, DELAY],
      ],
      /jumps back/,
    ],
    ['for silence alone', [[500, EMPTY]], /selects no audio/],
    ['for a time before the beginning', [...twoEntries, [500, 0xffffff00]], /is damaged/],
    ['for too many entries', Array.from({ length: 1001 }, () => twoEntries[0]), /has 1001 entries, more than 1000/],
    [
      'for a length of days',
      Array.from({ length: 50 }, (): EditEntry => [0xffffffff, EMPTY]).concat(twoEntries),
      /longer than 48 h/,
    ],
  ])('%s', async (_name, entries, message) => {
    const index = await mp4IndexOf(withEdits(plain, ...entries));
    expect(index.warning).toMatch(message);
    expect(index.warning).toMatch(
      /^The edit list of the MP4 file .*; it was ignored, and all of the audio was read\.$/,
    );
    expect(index.totalSamples).toBe(DELAY + 88_200);
  });

  it('but not for a rate of 0 in the only entry', async () => {
    const index = await mp4IndexOf(withEdits(plain, [2000, DELAY, 0]));
    expect(index).toMatchObject({ totalSamples: 88_200 });
    expect(index.warning).toBeUndefined();
    const media = (await mediaOf(plain)).subarray(DELAY, DELAY + 88_200);
    expect(worstDifference(await readSourceRate(withEdits(plain, [2000, DELAY, 0]), index, ports), media)).toBe(0);
  });
});

/** Start of a track with exact packet times. */
const exact: PartStart = {
  startPadding: 0,
  firstSeconds: 0,
  packetSamples: 1024,
  constantDuration: undefined,
  isOneRun: false,
};

it('extends the last entry to the end of the media within a movie tick', () => {
  const played = (duration: number) => {
    const list = { kind: 'edits', edits: [{ mediaTime: 0, duration }], movieTimescale: 1000 } as const;
    const spans = playEdits(list, RATE, RATE, exact);
    if ('fault' in spans) throw new Error(spans.fault);
    const player = new SpanPlayer(spans, 0);
    player.endAt(88_200);
    return player.totalSamples;
  };
  expect([2000, 1999, 1998].map(played)).toEqual([88_200, 88_200, 88_112]);
});

it('accepts overlaps of entries within the rounding of the movie clock', () => {
  // 33 ms are 1455.3 samples.
  const edits = [
    { mediaTime: 0, duration: 33 },
    { mediaTime: 1440, duration: 33 },
    { mediaTime: 2880, duration: 33 },
  ];
  const list = { kind: 'edits', edits, movieTimescale: 1000 } as const;
  expect(playEdits(list, RATE, RATE, exact)).toEqual([{ position: 0, samples: 4366, slackSamples: 45 }]);
  const early = { ...list, edits: [edits[0], { mediaTime: 1400, duration: 33 }] };
  expect(playEdits(early, RATE, RATE, exact)).toEqual({ fault: 'jumps back' });
});

describe('parseEdits', () => {
  it('parses both versions', () => {
    const edits = [
      { mediaTime: -1, duration: 500 },
      { mediaTime: 1024, duration: 3000 },
    ];
    const list = { kind: 'edits', edits, movieTimescale: 1000 };
    expect(parseEdits(editList([500, EMPTY], [3000, 1024]), 1000)).toEqual(list);
    const long = u32(0x01000000, 2, 0, 500, EMPTY, EMPTY, 0x10000, 0, 3000, 0, 1024, 0x10000);
    expect(parseEdits(long, 1000)).toEqual(list);
  });

  it('returns undefined without an entry or a clock', () => {
    expect(parseEdits(u32(0, 0), 1000)).toBeUndefined();
    expect(parseEdits(u32(0), 1000)).toBeUndefined();
    expect(parseEdits(editList([500, 0]), 0)).toBeUndefined();
  });

  it('bounds the length of the spans for random bytes', () => {
    const next = random(77);
    let followed = 0;
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
      const played = playEdits(list, 48_000, 48_000, exact);
      if ('fault' in played) continue;
      followed++;
      expect(played.every(({ samples = 1 }) => Number.isSafeInteger(samples) && samples > 0)).toBe(true);
      expect(played.every(({ position = 0, samples = 1 }) => position >= 0 && samples <= 48 * 3600 * 48_000)).toBe(
        true,
      );
      const player = new SpanPlayer(played, 0);
      player.endAt(1_000_000);
      expect(player.totalSamples).toBeLessThanOrEqual(48 * 3600 * 48_000 + 1_000_000);
    }
    expect(followed).toBeGreaterThan(20);
  });

  it('leads to a warning for a truncated list', async () => {
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
