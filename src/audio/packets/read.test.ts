import { describe, expect, it } from 'vitest';
import { audioPorts, memorySource, random, worstDifference } from '../../../test/helpers/audio.ts';
import { formatFixture } from '../../../test/helpers/bytes.ts';
import { BlockReader, probeAudio } from '../index.ts';
import { containerOf } from '../registry.ts';
import { opusPacketSamples } from './opus.ts';

const ports = audioPorts();

/** Whole decode through blocks of the given size. */
async function decode(file: Uint8Array, blockBytes?: number): Promise<Float32Array> {
  const probed = await probeAudio(memorySource(file), ports.decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  const container = containerOf(probed.value);
  const reader = new BlockReader(memorySource(file), blockBytes);
  const index = blockBytes ? await container.probe(reader, 0, ports.decoder) : probed;
  // Where views are used after their time, the index differs already.
  expect(index).toEqual(probed);
  const samples = new Float32Array(probed.value.totalSamples);
  let at = 0;
  for await (const block of container.readMono(reader, probed.value, ports.decoder, 0)) {
    samples.set(block, at);
    at += block.length;
  }
  return samples;
}

describe('packets', () => {
  it.each([
    'mp4-aac-16000-mono.m4a',
    'mp4-mp3-44100-mono.mp4',
    'mp4-fragments-aac-48000-stereo.mp4',
    'mp4-video-aac-44100-mono.mp4',
    'mov-s24be-8000-stereo.mov',
    'matroska-vorbis-44100-stereo.webm',
    'matroska-video-opus.webm',
    'matroska-flac-16000-mono.mka',
    'ogg-vorbis-8000-mono.ogg',
    'ogg-opus-speech-mono.opus',
    'mpegts-video-aac-44100-mono.mpegts',
    'mpegts-latm-aac-48000-stereo.mpegts',
    'mpegts-opus-stereo.mpegts',
    'mpegts-192-ac3-48000-stereo.m2ts',
  ])('%s: no view of the file is used after its time', async (name) => {
    const file = formatFixture(name);
    const whole = await decode(file);
    for (const blockBytes of [700, 5003]) expect(worstDifference(await decode(file, blockBytes), whole)).toBe(0);
  });

  it('a failing source is thrown as it comes, at whatever read', async () => {
    const file = formatFixture('mp4-aac-44100-stereo.m4a');
    const next = random(3);
    for (let i = 0; i < 10; i++) {
      const failAt = Math.floor(next() * 40);
      let reads = 0;
      const source = memorySource(file);
      const failing = {
        sizeBytes: file.length,
        read: (offset: number, length: number) =>
          reads++ === failAt ? Promise.reject(new Error('the line is cut')) : source.read(offset, length),
      };
      const reader = new BlockReader(failing, 1000);
      const probed = await probeAudio(memorySource(file), ports.decoder);
      if (!probed.ok) throw new Error(probed.error.message);
      const drain = async () => {
        for await (const block of containerOf(probed.value).readMono(reader, probed.value, ports.decoder, 0))
          block.at(0);
      };
      // What is read ahead may fail without harm; it is asked for again.
      await drain().catch((error: unknown) => expect(error).toMatchObject({ message: 'the line is cut' }));
    }
  });
});

it('Opus packets say their length in the first two bytes', () => {
  expect(opusPacketSamples(Uint8Array.of(0x00))).toBe(480);
  expect(opusPacketSamples(Uint8Array.of(0x18))).toBe(2880);
  expect(opusPacketSamples(Uint8Array.of(0x68))).toBe(960);
  expect(opusPacketSamples(Uint8Array.of(0xe1))).toBe(240);
  expect(opusPacketSamples(Uint8Array.of(0xfb, 3))).toBe(2880);
  // Longer than 120 ms, or cut off.
  expect(opusPacketSamples(Uint8Array.of(0xfb, 7))).toBe(0);
  expect(opusPacketSamples(Uint8Array.of(0xfb))).toBe(0);
  expect(opusPacketSamples(new Uint8Array(0))).toBe(0);
});
