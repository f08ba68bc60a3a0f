import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  memorySource,
  probeAudio,
  readSourceRate,
  worstDifference,
} from '../../../../test/helpers/audio.ts';
import { formatFixture, patched } from '../../../../test/helpers/bytes.ts';
import { indexOf } from '../../../../test/helpers/indexes.ts';
import { box, soundMovie, u32 } from '../../../../test/helpers/mp4.ts';

const ports = audioPorts();

/** A saw of 16 bits. */
const valueAt = (i: number) => ((i * 37) % 2001) - 1000;

/** Samples of a width, each a saw of 16 bits in its upper ones. */
function saw(frames: number, bytesPerSample: number, isBigEndian: boolean): Uint8Array {
  const bytes = new Uint8Array(frames * bytesPerSample);
  for (let i = 0; i < frames; i++) {
    const value = [valueAt(i) >> 8, valueAt(i) & 255, ...Array<number>(bytesPerSample - 2).fill(0)];
    bytes.set(isBigEndian ? value : value.reverse(), i * bytesPerSample);
  }
  return bytes;
}

const sawSamples = (frames: number) => Float32Array.from({ length: frames }, (_, i) => valueAt(i) / 32_768);

describe('uncompressed sound', () => {
  it.each([
    ['entries of one sample frame', 1, 2],
    ['entries of one sample frame that are said to have 1 byte', 1, 1],
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

describe('a sample rate that the entry has no room for', () => {
  it('is the timescale', async () => {
    const pcm = box('pcmC', u32(0), Uint8Array.of(1, 16));
    const movie = { type: 'ipcm', channels: 1, bits: 16, rateHz: 0, timescale: 96_000, boxes: pcm, ticksPerEntry: 1 };
    const file = soundMovie({ ...movie, entries: 9600, entryBytes: 2, data: saw(9600, 2, false) });
    expect(await indexOf(file)).toMatchObject({ sampleRateHz: 96_000, totalSamples: 9600 });
  });

  it('is unknown without one', async () => {
    const movie = { type: 'sowt', channels: 1, bits: 16, rateHz: 0, timescale: 0, entries: 100, entryBytes: 2 };
    const file = soundMovie({ ...movie, ticksPerEntry: 1, data: saw(100, 2, false) });
    expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({ ok: false });
  });

  it('stands in the header of FLAC, with the number of channels', async () => {
    const flac = formatFixture('mp4-flac-16000-mono.mp4');
    // Nine channels and no rate: bytes 20 and 28 after the name.
    const file = patched(patched(flac, 'fLaC', [0, 9], 20), 'fLaC', [0, 0], 28);
    const [good, index] = [await indexOf(flac), await indexOf(file)];
    expect(index).toEqual(good);
    const samples = await readSourceRate(file, index, ports);
    expect(worstDifference(samples, await readSourceRate(flac, good, ports))).toBe(0);
  });
});
