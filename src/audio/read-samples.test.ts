import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  memorySource,
  random,
  readRange,
  readSourceRate,
  testSignal,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { flacFile } from '../../test/helpers/flac.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { BlockReader } from './block-reader.ts';
import { type AudioIndex, outputSampleCount, probeAudio, readSamples } from './index.ts';
import { containerOf } from './registry.ts';

const ports = audioPorts();
const fixture = (name: string) => new Uint8Array(readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url)));

async function indexOf(file: Uint8Array): Promise<AudioIndex> {
  const probed = await probeAudio(memorySource(file), ports.decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  // An index is stored as JSON between the steps of a job.
  return JSON.parse(JSON.stringify(probed.value));
}

describe('committed recordings', () => {
  it.each([
    // Length, root mean square and peak of the mono signal as ffmpeg 5.1 decodes it.
    ['audio/codec_mp3_cbr_stereo.mp3', 44100, 13_230, 0.147754, 0.419238, 10_248],
    ['audio/codec_mp3_vbr_mono.mp3', 22050, 11_025, 0.220129, 0.460558, 3504],
    ['audio/codec_flac_16_stereo.flac', 44100, 11_025, 0.155345, 0.433456, 10_246],
    ['audio/codec_flac_24_mono.flac', 48000, 4800, 0.2224, 0.455444, 4722],
  ])('%s', async (name, rateHz, length, rms, peak, peakAt) => {
    const file = fixture(name);
    const index = await indexOf(file);
    expect(index).toMatchObject({ sampleRateHz: rateHz, totalSamples: length });
    expect(index.warning).toBeUndefined();
    const samples = await readSourceRate(file, index, ports);
    expect(samples).toHaveLength(length);
    const power = samples.reduce((sum, value) => sum + value * value, 0) / length;
    expect(Math.sqrt(power)).toBeCloseTo(rms, 4);
    const loudest = samples.reduce((best, value, i) => (Math.abs(value) > Math.abs(samples[best]) ? i : best), 0);
    expect(Math.abs(samples[loudest])).toBeCloseTo(peak, 4);
    expect(loudest).toBe(peakAt);
  });
});

describe('ranges', () => {
  const signal = testSignal(16000, 1, 25);
  const ints = Int16Array.from(signal, (value) => value * 32767);
  const files: [string, Uint8Array, number][] = [
    ['WAV at 16 kHz', wav16(signal, 16000), 0],
    ['WAV at 44.1 kHz, stereo', wav16(testSignal(44100, 2, 25), 44100, 2), 0],
    ['WAV at 11.025 kHz', wav16(testSignal(11025, 1, 25), 11025), 0],
    ['WAV at 8 kHz', wav16(testSignal(8000, 1, 25), 8000), 0],
    ['FLAC', flacFile(ints), 0],
    ['FLAC with variable blocks', flacFile(ints, { blockSizes: [4000, 100, 777] }), 0],
    ['MP3', fixture('conversation.mp3'), 0],
  ];

  it.each(files)('of %s are the same samples wherever they start', async (_name, file) => {
    const index = await indexOf(file);
    const count = outputSampleCount(index);
    const whole = await readRange(file, index, ports, 0, count);
    expect(whole).toHaveLength(count);
    const next = random(count);
    const starts = [
      1,
      15_999,
      16_000,
      160_000,
      160_001,
      count - 1,
      ...Array.from({ length: 12 }, () => Math.floor(next() * count)),
    ];
    for (const start of starts) {
      const end = Math.min(count, start + 1 + Math.floor(next() * 20_000));
      const part = await readRange(file, index, ports, start, end);
      expect(part).toHaveLength(end - start);
      expect(worstDifference(part, whole.subarray(start, end))).toBe(0);
    }
  });

  it('come in blocks of at most a second, and may be empty', async () => {
    const file = wav16(signal, 16000);
    const index = await indexOf(file);
    for await (const block of readSamples(memorySource(file), index, ports, { startSample: 0, endSample: 100_000 })) {
      expect(block.length).toBeLessThanOrEqual(16000);
      expect(block.length).toBeGreaterThan(0);
    }
    expect(await readRange(file, index, ports, 500, 500)).toHaveLength(0);
  });

  it('outside the recording are refused', async () => {
    const file = wav16(signal, 16000);
    const index = await indexOf(file);
    for (const [start, end] of [
      [-1, 5],
      [5, 4],
      [0, 25 * 16000 + 1],
      [Number.NaN, 5],
    ]) {
      await expect(readRange(file, index, ports, start, end)).rejects.toThrow(RangeError);
    }
  });

  it('of a long file read only their part of it', async () => {
    const long = wav16(new Float32Array(16000 * 200), 16000);
    const index = await indexOf(long);
    const source = memorySource(long);
    const samples = readSamples(source, index, ports, { startSample: 16000 * 100, endSample: 16000 * 101 });
    for await (const _ of samples);
    expect(source.reads.length).toBeLessThanOrEqual(2);
  });
});

it('short frames are given on together: a stage costs a step for every block', async () => {
  const file = fixture('conversation.mp3');
  const index = await indexOf(file);
  const lengths: number[] = [];
  for await (const block of containerOf(index).readMono(new BlockReader(memorySource(file)), index, ports.decoder, 0)) {
    lengths.push(block.length);
  }
  expect(Math.min(...lengths.slice(1, -1))).toBeGreaterThanOrEqual(4096);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(index.totalSamples);
});

it('a decoder is closed also when the reader stops early', async () => {
  const file = fixture('conversation.mp3');
  const index = await indexOf(file);
  let open = 0;
  const counting = {
    resampler: ports.resampler,
    decoder: {
      open(spec: Parameters<typeof ports.decoder.open>[0]) {
        const decoder = ports.decoder.open(spec);
        open++;
        return {
          decode: (packet: Uint8Array) => decoder.decode(packet),
          get sampleRateHz() {
            return decoder.sampleRateHz;
          },
          close() {
            open--;
            decoder.close();
          },
        };
      },
    },
  };
  for await (const _ of readSamples(memorySource(file), index, counting, { startSample: 0, endSample: 50_000 })) break;
  expect(open).toBe(0);
});

it('a recording that has lost its end since it was probed keeps its clock', async () => {
  const file = flacFile(Int16Array.from({ length: 20_000 }, (_, i) => i));
  const index = await indexOf(file);
  const cut = file.slice();
  cut.fill(0, 20_000);
  const samples = await readRange(cut, index, ports, 0, 20_000);
  expect(samples).toHaveLength(20_000);
  expect(samples[5000]).toBe(5000 / 32768);
  expect(samples[19_999]).toBe(0);
});
