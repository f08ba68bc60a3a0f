import { describe, expect, it } from 'vitest';
import { audioPorts, concat, random, readSourceRate, worstDifference } from '../../test/helpers/audio.ts';
import { find, formatFixture, patched } from '../../test/helpers/bytes.ts';
import { indexOf } from '../../test/helpers/indexes.ts';
import { block, cluster, element, matroskaHeader } from '../../test/helpers/matroska.ts';
import { wavFile } from '../../test/helpers/wav.ts';
import { effectsOfLayout, effectsOfMask, effectsOfPositions, MAX_LAYOUT_BYTES } from './pcm.ts';

const words = (...values: number[]) => {
  const bytes = new Uint8Array(4 * values.length);
  for (const [i, value] of values.entries()) new DataView(bytes.buffer).setUint32(4 * i, value);
  return bytes;
};
const tagged = (tag: number, channels: number) => words((tag << 16) | channels, 0, 0);
const described = (...labels: number[]) =>
  concat(words(0, 0, labels.length), ...labels.map((label) => words(label, 0, 0, 0, 0)));

describe('effects channels of WAV masks', () => {
  it.each([
    ['5.1', 0x3f, 6, [3]],
    ['5.1 with side channels', 0x60f, 6, [3]],
    ['7.1', 0x63f, 8, [3]],
    ['2.1', 0xb, 3, [2]],
    ['4.1 without a centre', 0x3b, 5, [2]],
    ['6.0', 0x707, 6, []],
    ['more channels than names', 0xf, 6, [3]],
    ['fewer channels than names', 0xf, 3, []],
    ['no names', 0, 6, []],
    ['stereo', 0xc, 2, []],
    ['mono', 0x8, 1, []],
  ])('%s', (_name, mask, channels, expected) => expect(effectsOfMask(mask, channels)).toEqual(expected));
});

describe('effects channels of Core Audio layouts', () => {
  it.each([
    ['L R C LFE Ls Rs', tagged(121, 6), 6, [3]],
    ['L R Ls Rs C LFE', tagged(122, 6), 6, [5]],
    ['C Lc Rc L R Ls Rs LFE', tagged(127, 8), 8, [7]],
    ['a tag for another number of channels', tagged(121, 6), 8, []],
    ['an unknown tag', tagged(999, 6), 6, []],
    ['a bitmap', words(0x10000, 0x3f, 0), 6, [3]],
    ['descriptions', described(1, 2, 4, 5, 6, 3), 6, [2]],
    ['descriptions, two of effects', described(1, 2, 4, 37), 4, [2, 3]],
    ['effects channels alone', described(4, 37, 4), 3, []],
    ['stereo', described(1, 4), 2, []],
    ['a truncated layout', described(1, 2, 4).subarray(0, 60), 3, []],
    ['no bytes', new Uint8Array(0), 6, []],
  ])('%s', (_name, bytes, channels, expected) => expect(effectsOfLayout(bytes, channels)).toEqual(expected));

  it('are valid channels and not all of them for random bytes', () => {
    const next = random(5);
    for (let round = 0; round < 5000; round++) {
      const bytes = Uint8Array.from({ length: Math.floor(next() * MAX_LAYOUT_BYTES) }, () =>
        next() < 0.8 ? Math.floor(next() * 5) : Math.floor(next() * 256),
      );
      const channels = 1 + Math.floor(next() * 64);
      const effects = effectsOfLayout(bytes, channels);
      expect(effects.length).toBeLessThan(channels);
      expect(effects.every((channel) => channel >= 0 && channel < channels)).toBe(true);
    }
  });
});

describe('effects channels of MP4 positions', () => {
  const short = (...bytes: number[]) => Uint8Array.of(0, 0, 0, 0, ...bytes);
  const long = (...bytes: number[]) => Uint8Array.of(1, 0, 0, 0, ...bytes);
  it.each([
    ['L R C LFE Ls Rs', short(1, 0, 0, 1, 2, 3, 4, 5), 6, [3]],
    ['an explicit position, two of effects', short(1, 0, 126, 3, 3, 3, 3, 0, 26), 4, [1, 3]],
    ['version 1', long(0x10, 6, 0, 6, 0, 1, 2, 4, 5, 3), 6, [5]],
    ['version 1 with another number of channels', long(0x10, 6, 0, 5, 0, 1, 2, 4, 3), 6, []],
    ['a layout number', short(1, 6, 0, 0, 0, 0, 0, 0, 0, 3), 6, []],
    ['objects', short(2, 3, 3, 3, 3, 3, 3), 6, []],
    ['effects channels alone', short(1, 0, 3, 3, 3), 3, []],
    ['stereo', short(1, 0, 0, 3), 2, []],
    ['a truncated list', short(1, 0, 0, 1), 6, []],
    ['no bytes', new Uint8Array(0), 6, []],
  ])('%s', (_name, bytes, channels, expected) => expect(effectsOfPositions(bytes, channels)).toEqual(expected));
});

describe('the mono mix', () => {
  const ports = audioPorts();
  const samplesOf = async (file: Uint8Array) => readSourceRate(file, await indexOf(file), ports);
  /** The mean of 500 frames of six channels without the effects channels. */
  const mixOf = (file: Uint8Array, from: number, read: 'getInt16' | 'getInt32', effects: readonly number[]) => {
    const view = new DataView(file.buffer, file.byteOffset + from);
    const [bytes, scale] = read === 'getInt16' ? [2, 2 ** 15] : [4, 2 ** 31];
    return Float32Array.from({ length: 500 }, (_, frame) => {
      const mixed = [0, 1, 2, 3, 4, 5].filter((c) => !effects.includes(c));
      const values = mixed.map((c) => view[read](bytes * (6 * frame + c), read === 'getInt16') / scale);
      return values.reduce((sum, value) => sum + value, 0) / mixed.length;
    });
  };
  const FRAME = [800, -400, 1600, 30000, 200, -1200];
  const surround = (mask: number) => {
    const data = Int16Array.from({ length: 600 }, (_, i) => FRAME[i % 6]);
    const header = { sampleRateHz: 8000, channels: 6, tag: 1, bits: 16, isExtensible: true };
    const file = wavFile(header, new Uint8Array(data.buffer));
    file[40] = mask;
    return file;
  };

  it('excludes low-frequency effects only if the header names them', async () => {
    const all = FRAME.reduce((sum, value) => sum + value, 0);
    const mean = Math.fround(all / 32768 / 6);
    const withoutEffects = Math.fround((all - 30000) / 32768 / 5);
    expect(new Set(await samplesOf(surround(0x3f)))).toEqual(new Set([withoutEffects]));
    expect(new Set(await samplesOf(surround(0)))).toEqual(new Set([mean]));
  });

  it('follows the positions of MP4', async () => {
    const file = patched(formatFixture('mov-s16le-8000-6ch.mov'), 'chan', 'chnl');
    file.set([0, 0, 0, 0, 1, 0, 0, 1, 2, 4, 5, 3], find(file, 'chnl') + 4);
    expect((await samplesOf(file)).subarray(0, 500)).toEqual(mixOf(file, find(file, 'mdat') + 4, 'getInt16', [5]));
  });

  it('follows the mask of WAV inside Matroska', async () => {
    const format = new DataView(new ArrayBuffer(40));
    for (const [at, value] of [
      [0, 0xfffe],
      [2, 6],
      [4, 8000],
      [14, 16],
      [20, 0x3f],
      [24, 1],
    ]) {
      format.setUint16(at, value, true);
    }
    const extra = element(0x63a2, new Uint8Array(format.buffer));
    const data = new Uint8Array(Int16Array.from({ length: 600 }, (_, i) => FRAME[i % 6]).buffer);
    const file = concat(matroskaHeader({ codecId: 'A_MS/ACM', extra }), cluster(0, block(0, data)));
    const index = await indexOf(file);
    expect(index).toMatchObject({ channels: 6, totalSamples: 100 });
    expect((await samplesOf(file))[0]).toBe(Math.fround((800 - 400 + 1600 + 200 - 1200) / 32768 / 5));
  });

  it('follows the layout of AIFF, Core Audio and QuickTime', async () => {
    for (const [name, type, data, headBytes, read] of [
      ['aiff-s32-8000-6ch.aiff', 'CHAN', 'SSND', 16, 'getInt32'],
      ['caf-s16le-8000-6ch.caf', 'chan', 'data', 16, 'getInt16'],
      ['mov-s16le-8000-6ch.mov', 'chan', 'mdat', 4, 'getInt16'],
    ] as const) {
      const file = formatFixture(name);
      const at = find(file, data) + headBytes;
      expect((await samplesOf(file)).subarray(0, 500)).toEqual(mixOf(file, at, read, [3]));
      const unnamed = patched(file, type, 'free');
      expect((await samplesOf(unnamed)).subarray(0, 500)).toEqual(mixOf(file, at, read, []));
    }
  });
});

const ports = audioPorts();
const RATE_HZ = 16000;

/** Silence, then a tone, both at a scale. */
const tone = (scale: number) =>
  Float32Array.from({ length: 5 * RATE_HZ }, (_, i) => (i < RATE_HZ ? 0 : scale * 0.5 * Math.sin(i / 7)));
const wavOf = (samples: Float32Array, channels = 1) =>
  wavFile({ sampleRateHz: RATE_HZ, channels, tag: 3, bits: 32 }, new Uint8Array(samples.buffer));
const decode = async (file: Uint8Array, from = 0) => readSourceRate(file, await indexOf(file), ports, from);

describe('outliers of float samples', () => {
  it.each([1e6, -1e6, 1e10, 1e30, 3e38])('of %d become 0, and no other sample changes', async (outlier) => {
    for (const scale of [1, 32768]) {
      const samples = tone(scale);
      if (Math.abs(outlier) < 1000 * scale) continue;
      const expected = samples.slice();
      for (const at of [100, 40_000, 40_001, 79_999]) {
        samples[at] = outlier;
        expected[at] = 0;
      }
      expect(worstDifference(await decode(wavOf(samples)), expected)).toBe(0);
    }
  });

  it('are the same from any start', async () => {
    const samples = tone(1);
    for (let at = 5; at < samples.length; at += 9973) samples[at] = 1e6;
    const file = wavOf(samples);
    const whole = await decode(file);
    expect(Math.max(...whole)).toBeLessThan(1);
    for (const from of [1, 16_383, 16_384, 40_000, 79_000]) {
      expect(worstDifference(await decode(file, from), whole.subarray(from))).toBe(0);
    }
  });

  it('in one of two channels become 0', async () => {
    const samples = tone(1);
    samples[50_000] = 1e9;
    const mono = await decode(wavOf(samples, 2));
    expect(mono[25_000]).toBe(0);
    expect(mono[25_001]).toBe(Math.fround((samples[50_002] + samples[50_003]) / 2));
  });
});

it.each([100, 1000, 60_000])('a few samples of ±%d in a recording at ±1 become 0', async (outlier) => {
  const samples = tone(1);
  const expected = samples.slice();
  for (const at of [100, 40_000, 40_001, 79_999]) {
    samples[at] = at % 2 === 0 ? outlier : -outlier;
    expected[at] = 0;
  }
  expect(worstDifference(await decode(wavOf(samples)), expected)).toBe(0);
});

it.each([1, 32768])('removes loud samples from a span of damaged bytes at ±%d', async (scale) => {
  const samples = tone(scale);
  const bits = new Uint32Array(samples.buffer);
  let state = 7;
  for (let at = 40_000; at < 41_000; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bits[at] = state;
  }
  const decoded = await decode(wavOf(samples));
  const expected = tone(scale);
  expect(worstDifference(decoded.subarray(0, 40_000), expected.subarray(0, 40_000))).toBe(0);
  expect(worstDifference(decoded.subarray(41_000), expected.subarray(41_000))).toBe(0);
  const left = decoded.subarray(40_000, 41_000);
  expect(Math.max(...left.map(Math.abs))).toBeLessThanOrEqual(5 * scale);
});

it('silences a recording whose samples begin at the wrong byte', async () => {
  const bytes = new Uint8Array(tone(1).buffer);
  const shifted = new Uint8Array(bytes.length);
  shifted.set(bytes.subarray(0, bytes.length - 3), 3);
  const decoded = await decode(wavFile({ sampleRateHz: RATE_HZ, channels: 1, tag: 3, bits: 32 }, shifted));
  expect(Math.max(...decoded.map(Math.abs))).toBeLessThanOrEqual(1);
});

it.each([1, 32768, 8388608, 2 ** 31])('does not change a recording scaled to ±%d', async (scale) => {
  expect(worstDifference(await decode(wavOf(tone(scale))), tone(scale))).toBe(0);
});
