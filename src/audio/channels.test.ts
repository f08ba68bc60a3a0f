import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { audioPorts, collect, memorySource, worstDifference } from '../../test/helpers/audio.ts';
import { Recording } from './recording.ts';

const FORMATS = join(import.meta.dirname, '../../test/fixtures/formats');
const ports = audioPorts();

async function samplesOf(bytes: Uint8Array, channel?: number): Promise<{ samples: Float32Array; channels: number }> {
  const opened = await Recording.open(memorySource(bytes), ports, undefined, channel);
  if (!opened.ok) throw new Error(opened.error.message);
  try {
    return { samples: await collect(opened.value.samples()), channels: opened.value.facts.channels };
  } finally {
    opened.value.close();
  }
}

it.each([
  'wav-s24-8000-stereo.wav',
  'aifc-mulaw-8000-stereo.aifc',
  'caf-s24be-8000-stereo.caf',
  'mov-s24be-8000-stereo.mov',
  'wav-adpcm-ima-8000-stereo.wav',
  'mp3-44100-stereo.mp3',
  'mp4-aac-44100-stereo.m4a',
  'ogg-opus-stereo.opus',
  'ogg-vorbis-44100-stereo.ogg',
])('reads each channel of %s separately; their mean is the mix', async (name) => {
  const bytes = new Uint8Array(readFileSync(join(FORMATS, name)));
  const mix = await samplesOf(bytes);
  expect(mix.channels).toBe(2);
  const [left, right] = [(await samplesOf(bytes, 0)).samples, (await samplesOf(bytes, 1)).samples];
  expect(worstDifference(left, right)).toBeGreaterThan(0.05);
  expect(
    worstDifference(
      left.map((value, i) => (value + right[i]) / 2),
      mix.samples,
    ),
  ).toBeLessThan(1e-5);
  // A channel that does not exist is silent.
  expect((await samplesOf(bytes, 2)).samples.every((value) => value === 0)).toBe(true);
});

it('reads each of eight channels of FLAC', async () => {
  const bytes = new Uint8Array(readFileSync(join(FORMATS, 'flac-s16-8000-8ch.flac')));
  const all = [];
  for (let channel = 0; channel < 8; channel++) all.push((await samplesOf(bytes, channel)).samples);
  for (const [channel, samples] of all.slice(1).entries())
    expect(worstDifference(samples, all[channel])).toBeGreaterThan(0.01);
});
