import { describe, expect, it } from 'vitest';
import { audioPorts, concat, type Decoded, memorySource, probeAudio, readRange } from '../../../test/helpers/audio.ts';
import { type FlacOptions, flacFile, flacFrames, flacHeader } from '../../../test/helpers/flac.ts';
import { indexAs } from '../../../test/helpers/indexes.ts';
import { id3v1, id3v2 } from '../../../test/helpers/mp3-frames.ts';
import { crc8, crc16 } from '../crc.ts';

const ports = audioPorts();

const signal = (length: number, seed = 0) =>
  Int16Array.from({ length }, (_, i) => Math.round(9000 * Math.sin(i / (5 + seed)) + 4000 * Math.sin(i / 3)));

const expectedOf = (samples: Int16Array) => Float32Array.from(samples, (value) => value / 32768);

const indexOf = (file: Uint8Array) => indexAs('flac', file);

async function decode(file: Uint8Array): Promise<{ index: Decoded; samples: Float32Array }> {
  const index = await indexOf(file);
  return { index, samples: await readRange(file, index, ports, 0, index.totalSamples) };
}

it('computes the checksums of the CRC catalogue', () => {
  const check = new TextEncoder().encode('123456789');
  expect(crc8(check, 0, 9)).toBe(0xf4); // CRC-8/SMBUS
  expect(crc16(check)).toBe(0xfee8); // CRC-16/UMTS
});

describe('complete FLAC files', () => {
  it.each<[string, FlacOptions]>([
    ['a fixed block size', {}],
    ['a short last block', { blockSamples: 1000 }],
    ['a variable block size', { blockSizes: [1024, 64, 4096, 333] }],
    ['tiny blocks, whose numbers take two bytes', { blockSamples: 16 }],
    ['an unknown length', { declaredSamples: 0 }],
    ['a declared length that is too short', { declaredSamples: 100 }],
    ['numbers that do not start at 0', { firstNumber: 70_000 }],
  ])('with %s decode bit for bit', async (_name, options) => {
    const pcm = signal(20_000);
    const { index, samples } = await decode(flacFile(pcm, options));
    expect(index).toMatchObject({ totalSamples: 20_000, sampleRateHz: 16000, channels: 1 });
    expect(index.warning).toBeUndefined();
    expect(samples).toEqual(expectedOf(pcm));
  });

  it('with several channels decode to their mean', async () => {
    const pcm = signal(3000);
    const interleaved = Int16Array.from({ length: 9000 }, (_, i) => (i % 3 === 1 ? pcm[Math.floor(i / 3)] : 0));
    const { index, samples } = await decode(flacFile(interleaved, { channels: 3 }));
    expect(index.channels).toBe(3);
    for (let i = 0; i < 3000; i++) expect(samples[i]).toBeCloseTo(pcm[i] / 32768 / 3, 6);
  });

  it('decode with tags before and after the audio', async () => {
    const pcm = signal(5000);
    const { index, samples } = await decode(concat(id3v2(3000), flacFile(pcm), id3v1()));
    expect(index.warning).toBeUndefined();
    expect(samples).toEqual(expectedOf(pcm));
  });

  it('decode with further metadata blocks', async () => {
    const pcm = signal(5000);
    const header = flacHeader(5000).slice();
    header[4] = 0;
    const padding = new Uint8Array(4 + 70_000);
    padding.set([0x81, 70_000 >> 16, (70_000 >> 8) & 255, 70_000 & 255]);
    const { samples } = await decode(concat(header, padding, ...flacFrames(pcm)));
    expect(samples).toEqual(expectedOf(pcm));
  });
});

describe('damaged FLAC files', () => {
  const pcm = signal(20 * 1024);
  const frames = flacFrames(pcm);
  const header = flacHeader(pcm.length);

  it('that end inside a frame decode up to it, with a warning', async () => {
    const file = concat(header, ...frames);
    const live = concat(flacHeader(0), ...frames);
    expect((await indexOf(live)).warning).toBeUndefined();
    expect((await indexOf(live.slice(0, live.length - 100))).warning).toMatch(/is incomplete|is shorter than/);
    for (const cut of [1, 100, frames[19].length - 1, frames[19].length + 5]) {
      const { index, samples } = await decode(file.slice(0, file.length - cut));
      const whole = cut > frames[19].length ? 18 : 19;
      expect(index.totalSamples).toBe(whole * 1024);
      expect(index.warning).toMatch(/is incomplete|is shorter than/);
      expect(samples).toEqual(expectedOf(pcm.slice(0, whole * 1024)));
    }
  });

  it('have silence for a frame with a damaged header', async () => {
    const spoilt = frames.map((frame) => frame.slice());
    spoilt[7][5] ^= 0x55;
    const { index, samples } = await decode(concat(header, ...spoilt));
    expect(index.totalSamples).toBe(pcm.length);
    expect(index.warning).toMatch(/0\.1 s in all, were taken as silence/);
    const expected = expectedOf(pcm);
    expect(samples.subarray(0, 7 * 1024)).toEqual(expected.subarray(0, 7 * 1024));
    expect(samples.subarray(8 * 1024)).toEqual(expected.subarray(8 * 1024));
  });

  it.each([0, 0x55])('have silence for first frames that are overwritten with %i', async (fill) => {
    const damaged = frames.map((frame, i) => (i < 3 ? frame.slice().fill(fill) : frame));
    const file = concat(header, ...damaged);
    const { index, samples } = await decode(file);
    expect(index.warning).toBe('Damaged parts of the FLAC file, 0.2 s in all, were taken as silence.');
    expect(samples).toEqual(expectedOf(pcm).fill(0, 0, 3 * 1024));
    for (const from of [1, 3 * 1024 - 1, 3 * 1024, 5000]) {
      expect(await readRange(file, index, ports, from, index.totalSamples)).toEqual(samples.subarray(from));
    }
  });

  it('have silence for missing frames', async () => {
    const { index, samples } = await decode(concat(header, ...frames.slice(0, 5), ...frames.slice(9)));
    expect(index.totalSamples).toBe(pcm.length);
    const expected = expectedOf(pcm).fill(0, 5 * 1024, 9 * 1024);
    expect(samples).toEqual(expected);
  });

  it('keep the time after a frame with damaged samples', async () => {
    const spoilt = frames.map((frame) => frame.slice());
    spoilt[3].fill(0xaa, 20, 400);
    const { index, samples } = await decode(concat(header, ...spoilt));
    expect(index.totalSamples).toBe(pcm.length);
    expect(samples.subarray(4 * 1024)).toEqual(expectedOf(pcm).subarray(4 * 1024));
  });

  it('have silence for a frame that does not decode', async () => {
    const spoilt = frames.map((frame) => frame.slice());
    // The first bit of a subframe is 0.
    spoilt[3][8] = 0xff;
    const { index, samples } = await decode(concat(header, ...spoilt));
    expect(index.totalSamples).toBe(pcm.length);
    expect(samples).toEqual(expectedOf(pcm).fill(0, 3 * 1024, 4 * 1024));
  });

  it('have silence for missing frames of variable size', async () => {
    const blockSizes = [1024, 64, 4096, 333];
    const various = flacFrames(pcm, { blockSizes });
    const file = concat(flacHeader(pcm.length, { blockSizes }), ...various.slice(0, 5), ...various.slice(7));
    const { index, samples } = await decode(file);
    expect(index.totalSamples).toBe(pcm.length);
    expect(samples).toEqual(expectedOf(pcm).fill(0, 5517 + 1024, 5517 + 1024 + 64 + 4096));
  });

  it('have silence for gaps up to 10 s, and longer ones if the declared length agrees', async () => {
    const long = signal(340_000);
    const all = flacFrames(long);
    const without = (from: number, to: number, declaredSamples = long.length) =>
      concat(flacHeader(long.length, { declaredSamples }), ...all.slice(0, from), ...all.slice(to));
    const file = without(157, 307);
    const { index, samples } = await decode(file);
    expect(samples).toEqual(expectedOf(long).fill(0, 157 * 1024, 307 * 1024));
    for (const start of [1000, 161_000, 300_000, 316_000, 330_000]) {
      expect(await readRange(file, index, ports, start, start + 5000)).toEqual(samples.slice(start, start + 5000));
    }
    expect((await indexOf(without(100, 260))).totalSamples).toBe(340_000);
    expect((await indexOf(without(100, 260, 0))).totalSamples).toBe(340_000 - 160 * 1024);
  });

  it('have silence for more than 10 s of damaged frames, also without a declared length', async () => {
    const long = signal(340_000);
    const spoilt = flacFrames(long).map((frame, i) =>
      i >= 100 && i < 260 ? frame.map((_, at) => (at * 37 + 11) & 0x7f) : frame,
    );
    for (const declaredSamples of [340_000, 0]) {
      const index = await indexOf(concat(flacHeader(340_000, { declaredSamples }), ...spoilt));
      expect(index).toMatchObject({
        totalSamples: 340_000,
        warning: 'Damaged parts of the FLAC file, 10.2 s in all, were taken as silence.',
      });
    }
  });

  it('give the same samples if reading begins at a frame before damage', async () => {
    const long = signal(340_000);
    const all = flacFrames(long, { blockSamples: 1600 });
    const options = { blockSamples: 1600 };
    for (const last of [102, 130]) {
      const spoilt = all.map((frame, i) => (i > 100 && i < last ? frame.map((_, at) => (at * 37 + 11) & 0x7f) : frame));
      const file = concat(flacHeader(long.length, options), ...spoilt);
      const { index, samples } = await decode(file);
      expect(samples).toHaveLength(long.length);
      for (const start of [160_000, 165_000, 230_000]) {
        expect(await readRange(file, index, ports, start, start + 20_000)).toEqual(
          samples.slice(start, start + 20_000),
        );
      }
    }
  });

  it('with extra bytes after the audio are read to the last frame', async () => {
    for (const length of [1, 100, 1000, 50_000]) {
      const { index, samples } = await decode(concat(header, ...frames, new Uint8Array(length)));
      expect(index.warning).toBeUndefined();
      expect(samples).toEqual(expectedOf(pcm));
    }
  });

  it('are not split at samples that look like frame headers', async () => {
    // The samples repeat a frame header with a right checksum and a number that is not the next one.
    const fake = [...frames[15].subarray(0, 9)];
    const bytes = new Uint8Array(2 * 4096);
    for (let i = 0; i + fake.length <= bytes.length; i += 10) bytes.set(fake, i + 1);
    const tricky = Int16Array.from({ length: 4096 }, (_, i) => (((bytes[2 * i] << 8) | bytes[2 * i + 1]) << 16) >> 16);
    const { index, samples } = await decode(flacFile(tricky));
    expect(index.totalSamples).toBe(4096);
    expect(samples).toEqual(expectedOf(tricky));
  });
});

describe('concatenated FLAC files', () => {
  const first = signal(5000);
  const second = signal(9000, 2);

  it('are one recording without the header of the second', async () => {
    const file = concat(flacHeader(5000), ...flacFrames(first), ...flacFrames(second));
    const { index, samples } = await decode(file);
    expect(index.totalSamples).toBe(14_000);
    expect(samples).toEqual(Float32Array.from([...expectedOf(first), ...expectedOf(second)]));
  });

  it('are one recording with both headers', async () => {
    const file = concat(flacFile(first), flacFile(second));
    const { index, samples } = await decode(file);
    expect(index.totalSamples).toBe(14_000);
    expect(samples).toEqual(Float32Array.from([...expectedOf(first), ...expectedOf(second)]));
  });

  it('give the same samples from any start', async () => {
    const file = concat(flacFile(signal(170_000)), flacFile(signal(170_000, 1)));
    const { index, samples } = await decode(file);
    expect(index.totalSamples).toBe(340_000);
    for (const start of [1, 159_999, 160_000, 169_999, 170_000, 171_000, 330_001, 339_999]) {
      const end = Math.min(start + 5000, 340_000);
      expect(await readRange(file, index, ports, start, end)).toEqual(samples.slice(start, end));
    }
  });
});

describe('the FLAC reader rejects', () => {
  it.each<[string, (header: Uint8Array) => void, string]>([
    ['another first block', (h) => h.fill(0x84, 4, 5), 'corrupt'],
    ['a rate of 0', (h) => h.fill(0, 18, 21), 'unsupported'],
    ['32 bits a sample', (h) => h.set([h[20] | 1, 0xf0], 20), 'unsupported'],
    ['no frames', () => {}, 'no_samples'],
  ])('%s', async (_name, change, kind) => {
    const header = flacHeader(1000).slice();
    change(header);
    expect(await probeAudio(memorySource(header), ports.decoder)).toMatchObject({ ok: false, error: { kind } });
  });

  it('a truncated header', async () => {
    for (const length of [4, 8, 41]) {
      const probed = await probeAudio(memorySource(flacHeader(1000).slice(0, length)), ports.decoder);
      expect(probed).toMatchObject({ ok: false, error: { kind: 'corrupt' } });
    }
  });
});
