import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  random,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture } from '../../../test/helpers/bytes.ts';
import { indexAs } from '../../../test/helpers/indexes.ts';
import { adtsFrameBytesAt, adtsLockAt, parseAdtsHeader } from './mpeg-frames.ts';
import { type LatmConfig, loasFrameBytes, parseLoasFrame } from './mpeg-ts-frames.ts';

type Field = readonly [bits: number, value: number];

/** Packs fields, first bit first. */
function packed(...fields: readonly Field[]): Uint8Array {
  const text = fields.map(([bits, value]) => value.toString(2).padStart(bits, '0')).join('');
  return Uint8Array.from({ length: Math.ceil(text.length / 8) }, (_, i) =>
    Number.parseInt(text.slice(8 * i, 8 * i + 8).padEnd(8, '0'), 2),
  );
}

const loas = (...fields: readonly Field[]): Uint8Array => {
  const body = packed(...fields);
  return concat(packed([11, 0x2b7], [13, body.length]), body);
};

/** Object type, rate, channels, 1024 samples, no core coder, no extension. */
const LC: Field[] = [
  [5, 2],
  [4, 4],
  [4, 2],
  [3, 0],
];
const LC_CONFIG: LatmConfig = { objectType: 2, rateIndex: 4, channelConfiguration: 2 };
/** One program of one layer with the same timing. */
const ONE_LAYER: Field[] = [
  [1, 1],
  [6, 0],
  [4, 0],
  [3, 0],
];
const OWN_CONFIG: Field = [1, 0];
const SAME_CONFIG: Field = [1, 1];
const VERSION_0: Field = [1, 0];
/** Frame length type, fullness, no other data, no checksum. */
const TAIL: Field[] = [
  [3, 0],
  [8, 0xff],
  [1, 0],
  [1, 0],
];
const PAYLOAD: Field[] = [
  [8, 3],
  [8, 0x21],
  [8, 0x42],
  [8, 0xa5],
];
const payloadOf = (frame: ReturnType<typeof parseLoasFrame>) =>
  frame.kind === 'frame' ? [...frame.adts.subarray(7)] : frame;

describe('a LOAS frame', () => {
  const plain = loas(OWN_CONFIG, VERSION_0, ...ONE_LAYER, ...LC, ...TAIL, ...PAYLOAD);

  it('becomes an ADTS frame with the same rate and channels', () => {
    const frame = parseLoasFrame(plain, undefined);
    if (frame.kind !== 'frame') throw new Error(frame.kind);
    expect(frame).toMatchObject({ config: LC_CONFIG, hasConfig: true });
    expect(adtsFrameBytesAt(frame.adts, 0, adtsLockAt(frame.adts, 0))).toBe(10);
    expect(parseAdtsHeader(frame.adts, 0)).toEqual({ coreRateHz: 44100, channels: 2, blocks: 1 });
    expect(payloadOf(frame)).toEqual([0x21, 0x42, 0xa5]);
  });

  it('may use the previous configuration', () => {
    const next = loas(SAME_CONFIG, ...PAYLOAD);
    expect(payloadOf(parseLoasFrame(next, LC_CONFIG))).toEqual([0x21, 0x42, 0xa5]);
    expect(parseLoasFrame(next, LC_CONFIG)).toMatchObject({ hasConfig: false });
    expect(parseLoasFrame(next, undefined)).toEqual({ kind: 'damaged' });
  });

  it.each<[string, Field[]]>([
    ['bandwidth extension', [VERSION_0, ...ONE_LAYER, [5, 5], [4, 7], [4, 2], [4, 4], [5, 2], [3, 0], ...TAIL]],
    [
      'parametric stereo with an explicit rate',
      [VERSION_0, ...ONE_LAYER, [5, 29], [4, 7], [4, 1], [4, 15], [24, 44100], [5, 2], [3, 0], ...TAIL],
    ],
    [
      'version 1 with unknown fields in the configuration',
      [[1, 1], [1, 0], [2, 1], [16, 77], ...ONE_LAYER, [2, 0], [8, 32], ...LC, [16, 0xbeef], ...TAIL],
    ],
    [
      'other data and a checksum',
      [VERSION_0, ...ONE_LAYER, ...LC, [3, 0], [8, 0], [1, 1], [1, 1], [8, 1], [1, 0], [8, 200], [1, 1], [8, 0x5a]],
    ],
  ])('is parsed with %s', (_name, config) => {
    expect(payloadOf(parseLoasFrame(loas(OWN_CONFIG, ...config, ...PAYLOAD), undefined))).toEqual([0x21, 0x42, 0xa5]);
  });

  it.each<[string, Field[]]>([
    [
      'of an unknown version',
      [
        [1, 1],
        [1, 1],
      ],
    ],
    ['with streams of different timing', [VERSION_0, [1, 0]]],
    ['with several frames in one', [VERSION_0, [1, 1], [6, 1]]],
    ['with several programs', [VERSION_0, [1, 1], [6, 0], [4, 1]]],
    ['with several layers', [VERSION_0, [1, 1], [6, 0], [4, 0], [3, 1]]],
    ['with the object type 39', [VERSION_0, ...ONE_LAYER, [5, 31], [6, 7], [4, 3], [4, 2]]],
    ['with an unusual sample rate', [VERSION_0, ...ONE_LAYER, [5, 2], [4, 15], [24, 12345], [4, 2]]],
    ['with an unusual order of channels', [VERSION_0, ...ONE_LAYER, [5, 2], [4, 4], [4, 0]]],
    ['with frames of 960 samples', [VERSION_0, ...ONE_LAYER, [5, 2], [4, 4], [4, 2], [1, 1]]],
    ['with frames of constant length', [VERSION_0, ...ONE_LAYER, ...LC, [3, 1]]],
  ])('%s is unsupported', (feature, config) => {
    const frame = parseLoasFrame(loas(OWN_CONFIG, ...config, [32, 0], [32, 0]), undefined);
    expect(frame).toEqual({ kind: 'unsupported', coding: `AAC (LATM) ${feature}` });
  });

  it('with xHE-AAC is unsupported', () => {
    const config: Field[] = [VERSION_0, ...ONE_LAYER, [5, 31], [6, 10], [4, 3], [4, 2]];
    const frame = parseLoasFrame(loas(OWN_CONFIG, ...config, [32, 0], [32, 0]), undefined);
    expect(frame).toEqual({ kind: 'unsupported', coding: 'xHE-AAC (USAC)' });
  });

  it('is rejected if truncated, and stays in bounds for random bytes', () => {
    for (let length = 0; length < plain.length; length++) {
      expect(parseLoasFrame(plain.subarray(0, length), LC_CONFIG).kind).not.toBe('frame');
    }
    const next = random(4);
    for (let round = 0; round < 20_000; round++) {
      const bytes = Uint8Array.from({ length: Math.floor(next() * 40) }, () =>
        next() < 0.3 ? 255 : Math.floor(next() * 256),
      );
      const frame = parseLoasFrame(bytes, next() < 0.5 ? LC_CONFIG : undefined);
      if (frame.kind === 'frame') expect(frame.adts.length).toBeLessThan(bytes.length + 7);
      expect(loasFrameBytes(bytes, 0)).toBeLessThanOrEqual(8194);
    }
  });
});

describe('streams with LATM', () => {
  const ports = audioPorts();
  const stereo = formatFixture('mpegts-latm-aac-48000-stereo.mpegts');
  const surround = formatFixture('mpegts-latm-aac-48000-6ch.mpegts');

  it('are joined at a change of the configuration', async () => {
    const file = concat(stereo, surround);
    const [one, two, both] = await Promise.all([stereo, surround, file].map((part) => indexAs('mpeg-ts', part)));
    expect(both.totalSamples).toBe(one.totalSamples + two.totalSamples);
    const samples = await readSourceRate(file, both, ports);
    // The same samples at the same time, except for the noise that replaces some bands.
    const alone = (await readSourceRate(surround, two, ports)).subarray(2048, -8);
    const power = alone.reduce((sum, value) => sum + value * value, 0);
    const errors = [-1, 0, 1].map((shift) => {
      const joined = samples.subarray(one.totalSamples + 2048 + shift);
      return alone.reduce((sum, value, i) => sum + (value - joined[i]) ** 2, 0) / power;
    });
    expect(errors.indexOf(Math.min(...errors))).toBe(1);
    expect(errors[1]).toBeLessThan(0.03);
  });

  it('keep their lengths at a change of the sample rate, with the same samples from any start', async () => {
    const extended = formatFixture('mpegts-latm-heaac-44100-mono.mpegts');
    const pairs = [
      [stereo, extended],
      [extended, stereo],
    ];
    for (const pair of pairs) {
      // Long enough for restarts of decoders.
      const parts = Array.from({ length: 8 }, () => pair).flat();
      const alone = await Promise.all(pair.map((part) => indexAs('mpeg-ts', part)));
      const file = concat(...parts);
      const index = await indexAs('mpeg-ts', file);
      expect(index.sampleRateHz).toBe(alone[0].sampleRateHz);
      expect(index.durationSeconds).toBeCloseTo(8 * (alone[0].durationSeconds + alone[1].durationSeconds), 3);
      const whole = await readSourceRate(file, index, ports);
      expect(whole).toHaveLength(index.totalSamples);
      const next = random(5);
      for (let round = 0; round < 5; round++) {
        const start = Math.floor(next() * index.totalSamples);
        expect(worstDifference(await readSourceRate(file, index, ports, start), whole.subarray(start))).toBe(0);
      }
    }
  });

  it('begin at the first frame with a configuration', async () => {
    const index = await indexAs('mpeg-ts', stereo);
    const late = await indexAs('mpeg-ts', stereo.slice(188 * 12));
    expect(late.totalSamples).toBeGreaterThan(0);
    expect(late.totalSamples).toBeLessThan(index.totalSamples);
  });

  it('with an unsupported configuration are rejected by name', async () => {
    // Changes the first bits of each configuration to several frames in one.
    const file = stereo.slice();
    for (let at = 0; at + 6 < file.length; at++) {
      if (file[at] === 0x56 && (file[at + 1] & 0xe0) === 0xe0 && (file[at + 3] & 0xe0) === 0x20) file[at + 3] |= 2;
    }
    expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringMatching(/AAC \(LATM\) with several frames in one, which/) },
    });
  });
});
