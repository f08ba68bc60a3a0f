import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../../test/helpers/audio.ts';
import { formatFixture, indexAs } from '../../../../test/helpers/indexes.ts';
import { id3v1, id3v2 } from '../../../../test/helpers/mp3-frames.ts';
import { adtsFrameBytesAt, adtsLockAt } from './header.ts';

const ports = audioPorts();
const mono = formatFixture('adts-aac-16000-mono.aac');

const indexOf = (file: Uint8Array) => indexAs('adts', file);

function framesOf(file: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < file.length; ) {
    const length = adtsFrameBytesAt(file, at, adtsLockAt(file, 0));
    frames.push(file.slice(at, at + length));
    at += length;
  }
  return frames;
}

describe('length and rate', () => {
  it('are those of the sound: bandwidth extension doubles what the header says', async () => {
    expect(await indexOf(mono)).toMatchObject({
      codec: 'aac',
      sampleRateHz: 16000,
      channels: 1,
      totalSamples: framesOf(mono).length * 1024,
    });
    const he = formatFixture('adts-heaac-44100-mono.aac');
    const frames = framesOf(he).length;
    expect(await indexOf(he)).toMatchObject({ sampleRateHz: 44100, totalSamples: frames * 2048 });
  });

  it('leave tags out', async () => {
    const { totalSamples } = await indexOf(mono);
    expect(await indexOf(concat(id3v2(500), mono, id3v1()))).toMatchObject({ totalSamples });
    expect((await indexOf(concat(id3v2(500), mono, id3v1()))).warning).toBeUndefined();
  });
});

describe('bandwidth extension that comes and goes, with the same headers', () => {
  const lc = framesOf(mono);
  const he = framesOf(formatFixture('adts-heaac-32000-stereo.aac'));
  const energy = (samples: Float32Array) => samples.reduce((sum, x) => sum + x * x, 0);

  it('is found after a first frame without it, which made half of every frame the whole', async () => {
    const file = concat(lc[0], ...he);
    expect(await indexOf(file)).toMatchObject({ sampleRateHz: 32000, totalSamples: (1 + he.length) * 2048 });
  });

  it('that ends leaves the sound as fast as before and without holes', async () => {
    const file = concat(...he, ...lc);
    const index = await indexOf(file);
    expect(index).toMatchObject({ sampleRateHz: 32000, totalSamples: (he.length + lc.length) * 2048 });
    const from = he.length * 1024;
    const joined = await readRange(file, index, ports, from, from + lc.length * 1024);
    const alone = await readRange(mono, await indexOf(mono), ports, 0, lc.length * 1024);
    const half = (samples: Float32Array, which: number) =>
      energy(samples.filter((_, i) => Math.floor((i % 1024) / 512) === which));
    // The second half of every frame was silence.
    const [first, second] = [0, 1].map((which) => half(joined, which) / half(alone, which));
    expect(first).toBeCloseTo(1, 0);
    expect(second).toBeCloseTo(1, 0);
  });
});

describe('damage', () => {
  it('between frames is left out, with a warning', async () => {
    const frames = framesOf(mono);
    const file = concat(...frames.slice(0, 20), new Uint8Array(777), ...frames.slice(20));
    const index = await indexOf(file);
    expect(index).toMatchObject({
      totalSamples: frames.length * 1024,
      warning: '777 bytes inside the AAC file are damaged and were left out.',
    });
    expect(await readSourceRate(file, index, ports)).toHaveLength(index.totalSamples);
  });

  it('inside a frame costs no time', async () => {
    const frames = framesOf(mono);
    frames[10].fill(0xaa, 9);
    const file = concat(...frames);
    const index = await indexOf(file);
    const samples = await readSourceRate(file, index, ports);
    const clean = await readSourceRate(mono, await indexOf(mono), ports);
    expect(samples).toHaveLength(clean.length);
    expect(worstDifference(samples.slice(0, 10 * 1024), clean.slice(0, 10 * 1024))).toBe(0);
  });

  it('at the end: the cut frame is left out, with a warning', async () => {
    const frames = framesOf(mono);
    const index = await indexOf(mono.slice(0, mono.length - 3));
    expect(index).toMatchObject({
      totalSamples: (frames.length - 1) * 1024,
      warning: expect.stringMatching(/ends before/),
    });
  });
});

it('frames of another sample rate after the others are left out, with a warning', async () => {
  const other = formatFixture('adts-aac-44100-stereo.aac');
  const { totalSamples, durationSeconds } = await indexOf(mono);
  expect(await indexOf(concat(mono, other))).toMatchObject({
    totalSamples,
    warning: `The AAC file goes on at another sample rate or in another coding after ${durationSeconds.toFixed(1)} s; that part was left out.`,
  });
  expect((await indexOf(concat(mono, new Uint8Array(100_000)))).warning).toBeUndefined();
});

describe('what is refused', () => {
  it('several blocks in a frame, and frames that hold nothing known', async () => {
    const frames = framesOf(mono);
    const blocks = concat(...frames.map((frame) => frame.map((byte, i) => (i === 6 ? byte | 1 : byte))));
    expect(await probeAudio(memorySource(blocks), ports.decoder)).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringMatching(/several blocks/) },
    });
    const empty = concat(...frames.map((frame) => frame.slice().fill(0xff, 7)));
    expect(await probeAudio(memorySource(empty), ports.decoder)).toMatchObject({ ok: false });
  });
});
