import { describe, expect, it } from 'vitest';
import { aiffFile, cafFile } from '../../test/helpers/apple-audio.ts';
import { concat } from '../../test/helpers/audio.ts';
import { flacFile } from '../../test/helpers/flac.ts';
import { formatFixture, indexOf } from '../../test/helpers/indexes.ts';
import { apeTag, id3v1, id3v2 } from '../../test/helpers/mp3-frames.ts';
import { wav16, wavFile } from '../../test/helpers/wav.ts';

/** Concatenated files: audio that is left out causes a warning, tags and padding after a recording do not. */

const text = (value: string) => new TextEncoder().encode(value);
const tone = Float32Array.from({ length: 8001 }, (_, i) => 0.4 * Math.sin(i / 7));
const tone16 = Int16Array.from(tone, (value) => value * 32767);
const list = concat(text('LIST'), Uint8Array.of(10, 0, 0, 0), text('INFOISFTab'));
const eight = wavFile({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 8 }, new Uint8Array(801).fill(128));

const files: Record<string, readonly [name: string, file: Uint8Array]> = {
  wav: ['WAV', wav16(tone, 16000)],
  'wav, odd number of bytes': ['WAV', eight],
  'wav without the padding byte': ['WAV', eight.slice(0, -1)],
  'wav with a LIST chunk at the end': ['WAV', concat(wav16(tone, 16000), list)],
  aiff: ['AIFF', aiffFile({}, new Uint8Array(2000))],
  caf: ['Core Audio', cafFile({}, new Uint8Array(2000))],
  webm: ['Matroska', formatFixture('matroska-opus-mono.webm')],
  'webm, live': ['Matroska', formatFixture('matroska-live-opus-stereo.webm')],
  matroska: ['Matroska', formatFixture('matroska-aac-32000-stereo.mka')],
};

describe.each(Object.entries(files))('a concatenated file of %s', (_name, [name, file]) => {
  it('ends with the first of two files and a warning', async () => {
    const [alone, both] = [await indexOf(file), await indexOf(concat(file, file))];
    expect(alone.warning).toBeUndefined();
    expect(both.totalSamples).toBe(alone.totalSamples);
    expect(both.warning).toBe(`The ${name} file contains a second recording after the first; it was left out.`);
  });

  it('may end with tags and padding without a warning', async () => {
    const { totalSamples } = await indexOf(file);
    for (const tail of [id3v1(), id3v2(50), apeTag(20), list, new Uint8Array(3), new Uint8Array(20_000)]) {
      const index = await indexOf(concat(file, tail));
      expect(index.totalSamples).toBe(totalSamples);
      expect(index.warning).toBeUndefined();
    }
  });
});

it('warns of bytes after the samples of a WAV file that are no chunk', async () => {
  const stale = wavFile(
    { sampleRateHz: 16000, channels: 1, tag: 1, bits: 16, declaredBytes: 2000 },
    wav16(tone, 16000),
  );
  const index = await indexOf(stale);
  expect(index.totalSamples).toBe(1000);
  expect(index.warning).toMatch(/^\d+ bytes after the samples of the WAV file/);
});

describe('a concatenated FLAC file', () => {
  const first = flacFile(tone16);

  it('is one recording if all have the same format', async () => {
    const index = await indexOf(concat(first, id3v1(), flacFile(tone16)));
    expect(index).toMatchObject({ totalSamples: 2 * 8001 });
    expect(index.warning).toBeUndefined();
  });

  it('ends before a file of another format, with a warning', async () => {
    for (const declaredSamples of [undefined, 0]) {
      const stereo = flacFile(tone16.subarray(0, 8000), { channels: 2 });
      const index = await indexOf(concat(flacFile(tone16, { declaredSamples }), stereo));
      expect(index).toMatchObject({ totalSamples: 8001 });
      expect(index.warning).toMatch(/continues at another sample rate or with other channels after 0\.5 s/);
    }
  });

  it('may end with tags and padding without a warning', async () => {
    for (const tail of [id3v1(), apeTag(20), new Uint8Array(20_000)]) {
      const index = await indexOf(concat(first, tail));
      expect(index).toMatchObject({ totalSamples: 8001 });
      expect(index.warning).toBeUndefined();
    }
  });
});
