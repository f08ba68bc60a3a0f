import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  type Decoded,
  memorySource,
  outputSampleCount,
  probeAudio,
  random,
  readAll,
  testSignal,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { RUNS_ALL_CASES } from '../../test/helpers/cases.ts';
import { flacFile, flacFrames, flacHeader } from '../../test/helpers/flac.ts';
import { amrOf, matroskaOf, oggOpus, times, transportStreamOf } from '../../test/helpers/long-recordings.ts';
import { apeTag, id3v1, id3v2, infoFrame, mp3Frames } from '../../test/helpers/mp3-frames.ts';
import { fragmentMovie, packetMovie } from '../../test/helpers/mp4.ts';
import { mutate } from '../../test/helpers/mutate.ts';
import { withChecksums } from '../../test/helpers/ogg.ts';
import { pcm16, wavFile } from '../../test/helpers/wav.ts';
import type { AudioResult } from './audio-ports.ts';
import { OutOfBounds } from './block-reader.ts';
import { DAMAGED_SIZE } from './recording.ts';

const SHARE = RUNS_ALL_CASES ? 1 : 0.1;
const ROUNDS = 2000 * SHARE;
/** Rounds for complete recordings, which take longer to decode. */
const ROUNDS_OF_RECORDINGS = 300 * SHARE;
const file = (path: string) => new Uint8Array(readFileSync(new URL(`../../test/fixtures/${path}`, import.meta.url)));
const fixture = (name: string) => file(`audio/${name}`);
const format = (name: string) => file(`formats/${name}`);
/** The start of a recording that is read in one direction: mutations of a long one would rarely hit its headers. */
const start = (name: string) => format(name).slice(0, 3000);

const tone = Float32Array.from({ length: 3000 }, (_, i) => 0.4 * Math.sin(i / 7));
const tone16 = Int16Array.from(tone, (value) => value * 32767);
const seeds: Record<string, Uint8Array> = {
  wav: wavFile({ sampleRateHz: 16000, channels: 2, tag: 1, bits: 16, isExtensible: true }, pcm16(tone)),
  rf64: wavFile({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 24, magic: 'RF64' }, pcm16(tone).slice(0, 3000)),
  flac: concat(id3v2(50), flacFile(tone16, { blockSamples: 256 }), id3v1()),
  'flac, variable blocks': flacFile(tone16, { blockSizes: [100, 300], declaredSamples: 0 }),
  'flac from the encoder': fixture('codec_flac_16_stereo.flac'),
  mp3: concat(id3v2(30), infoFrame({ frames: 12, encoder: 'LAME3.100', delaySamples: 576 }), mp3Frames(12), apeTag(20)),
  'mp3 from the encoder': fixture('codec_mp3_vbr_mono.mp3'),
};

const recordings: Record<string, Uint8Array> = {
  'mp4, index before the packets': format('mp4-aac-16000-mono.m4a'),
  'mp4, index after the packets': format('mp4-opus-stereo.mp4'),
  'mp4 in fragments': format('mp4-fragments-aac-48000-stereo.mp4'),
  'mp4, samples in the index and fragments': format('mp4-tables-and-fragments-aac-32000-mono.mp4'),
  'mp4, HE-AAC, with iTunes tags': format('mp4-heaac-itunes-32000-stereo.m4a'),
  'mp4 with video': format('mp4-video-aac-44100-mono.mp4'),
  quicktime: format('mov-s24be-8000-stereo.mov'),
  webm: format('matroska-opus-mono.webm'),
  'webm, live': format('matroska-live-opus-stereo.webm'),
  'webm, Vorbis': format('matroska-vorbis-44100-stereo.webm'),
  'matroska, FLAC': format('matroska-flac-16000-mono.mka'),
  'ogg, Vorbis': format('ogg-vorbis-8000-mono.ogg'),
  'ogg, Opus': format('ogg-opus-speech-mono.opus'),
  'ogg, FLAC': format('ogg-flac-16000-mono.oga'),
  'mpeg-ts, AAC': format('mpegts-aac-44100-stereo.mpegts'),
  'mpeg-ts, AAC in LATM': format('mpegts-latm-heaac-44100-mono.mpegts'),
  'mpeg-ts, Opus': format('mpegts-opus-stereo.mpegts'),
  'mpeg-ts with video': format('mpegts-video-aac-44100-mono.mpegts'),
  'wav, IMA ADPCM': start('wav-adpcm-ima-8000-stereo.wav'),
  'wav, Microsoft ADPCM': start('wav-adpcm-ms-8000-stereo.wav'),
  'wav, GSM': start('wav-gsm-8000-mono.wav'),
  'wav, MP3': start('wav-mp3-22050-mono.wav'),
  aiff: start('aiff-s24-44100-stereo.aiff'),
  'aiff, IMA ADPCM': start('aifc-ima4-22050-stereo.aifc'),
  caf: start('caf-s24be-8000-stereo.caf'),
  // ffmpeg puts the packet table after the data.
  'caf, ALAC': format('caf-alac-8000-6ch.caf'),
  adts: start('adts-aac-16000-mono.aac'),
  'adts, HE-AAC': start('adts-heaacv2-44100-stereo.aac'),
  mp2: start('mp2-16000-mono.mp2'),
  'amr-nb': start('amr-nb-dtx-8000-mono.amr'),
  'amr-wb': start('amr-wb-16000-mono.amr'),
};

/** Rounds for recordings of 100 s. */
const ROUNDS_OF_LONG = 25;
const packetsOfTenth = (packets: number, samples: number) => {
  const bytes = Uint8Array.from(testSignal(1000, 1, 100), (value) => 128 + 100 * value);
  return Array.from({ length: packets }, (_, i) => bytes.slice(samples * i, samples * (i + 1)));
};
const raw = { type: 'raw ', channels: 1, bits: 8, rateHz: 1000, timescale: 1000, ticksPerPacket: 100 };
const NO_BYTES = new Uint8Array(0);

/** Recordings that decode fast, for every kind of packet walk. */
const long: Record<string, () => Uint8Array | Promise<Uint8Array>> = {
  wav: () => wavFile({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 16 }, pcm16(testSignal(8000, 1, 100))),
  'matroska, PCM': () =>
    matroskaOf('A_PCM/INT/LIT', NO_BYTES, packetsOfTenth(1000, 100), (i) => 100 * i + (i > 300 ? 700 : 0)),
  'mp4, index before the packets': () => packetMovie({ ...raw, packets: packetsOfTenth(1000, 100) }),
  'mp4, index after the packets': () => packetMovie({ ...raw, packets: packetsOfTenth(1000, 100), isIndexLast: true }),
  'mp4 in fragments': () => fragmentMovie({ ...raw, packets: packetsOfTenth(1000, 100) }),
  'ogg, Opus': () => oggOpus(17, 50),
  'ogg, chained recordings': async () => concat(...times(16, format('ogg-opus-speech-mono.opus'))),
  'mpeg-ts': () => transportStreamOf('mpegts-aac-44100-stereo.mpegts', 0x100, 90_112 / 44_100, 50),
  flac: () =>
    flacFile(
      Int16Array.from(testSignal(16_000, 1, 100), (value) => value * 32767),
      { blockSamples: 4096 },
    ),
  'amr-nb': () => amrOf('amr-nb-8000-mono.amr', 6, 20),
  adts: () => concat(...times(25, format('adts-aac-8000-mono.aac'))),
  mp3: () => mp3Frames(4000),
};

const ports = audioPorts();

/** The result of decoding a file; impossible sizes may be found only while reading. */
async function resultOf(file: Uint8Array): Promise<AudioResult<Decoded>> {
  try {
    return await probeAudio(memorySource(file), ports.decoder);
  } catch (error) {
    if (error instanceof OutOfBounds) return DAMAGED_SIZE;
    throw error;
  }
}

describe('mutated files', () => {
  it.each(Object.keys({ ...seeds, ...recordings }))('of %s give a failure or samples in bounded time', async (name) => {
    const seed = seeds[name] ?? recordings[name];
    const rounds = name in seeds ? ROUNDS : ROUNDS_OF_RECORDINGS;
    const next = random(name.length * 7919);
    let readable = 0;
    const started = performance.now();
    for (let round = 0; round < rounds; round++) {
      const mutated = mutate(seed, next);
      // With wrong checksums most mutations would not reach the later code.
      const file = name.startsWith('ogg') && round % 2 === 0 ? withChecksums(mutated) : mutated;
      const decoded = await resultOf(file);
      if (!decoded.ok) {
        expect(decoded.error.message).toMatch(/^[A-Z].{8,150}\.$/);
        continue;
      }
      readable++;
      const { totalSamples, sampleRateHz, durationSeconds, warning = '' } = decoded.value;
      expect(Number.isSafeInteger(totalSamples) && totalSamples > 0).toBe(true);
      expect(durationSeconds).toBe(totalSamples / sampleRateHz);
      expect(warning.length).toBeLessThan(1000);
      if (round % 10 !== 0) continue;
      const { samples, end } = await readAll(file, ports);
      expect(samples.every((value) => Number.isFinite(value))).toBe(true);
      expect(samples).toHaveLength(outputSampleCount(decoded.value));
      expect(end).toMatchObject({ ok: true, value: { totalSamples: samples.length, durationSeconds } });
    }
    expect(readable).toBeGreaterThan(rounds / 20);
    expect(readable).toBeLessThan(rounds);
    expect(performance.now() - started).toBeLessThan(25_000);
  });

  it.runIf(RUNS_ALL_CASES).each(Object.keys(long))(
    'of 100 s in %s give the same samples from a checkpoint in bounded time',
    async (name) => {
      const seed = await long[name]();
      const next = random(name.length * 104_729);
      const started = performance.now();
      const before = process.memoryUsage().rss;
      let resumed = 0;
      for (let round = 0; round < ROUNDS_OF_LONG; round++) {
        const mutated = mutate(seed, next);
        const damaged = name.startsWith('ogg') && round % 2 === 0 ? withChecksums(mutated) : mutated;
        if (!(await resultOf(damaged)).ok) continue;
        const whole = await readAll(damaged, ports, [95 * 16_000]);
        for (const checkpoint of whole.checkpoints) {
          const rest = await readAll(damaged, ports, [], checkpoint);
          const worst = worstDifference(rest.samples, whole.samples.subarray(checkpoint.sample));
          expect({ name, round, worst, end: rest.end }).toEqual({ name, round, worst: 0, end: whole.end });
          if (checkpoint.restart) resumed++;
        }
      }
      expect(resumed).toBeGreaterThan(ROUNDS_OF_LONG / 10);
      expect(performance.now() - started).toBeLessThan(25_000);
      expect(process.memoryUsage().rss - before).toBeLessThan(500 << 20);
    },
  );

  it('with the checkpoint of another file give samples or an error in bounded time', async () => {
    const files = await Promise.all(Object.values(long).map((make) => make()));
    const checkpoints = [];
    for (const bytes of files) checkpoints.push(...(await readAll(bytes, ports, [95 * 16_000])).checkpoints);
    for (const [i, bytes] of files.entries()) {
      const started = performance.now();
      const other = checkpoints[(i + 1) % files.length];
      const samples = await readAll(bytes, ports, [], other).catch((error: unknown) => error);
      if (samples instanceof RangeError) continue;
      expect(samples).toMatchObject({ samples: expect.any(Float32Array) });
      expect(performance.now() - started).toBeLessThan(10_000);
    }
  });

  it('of random bytes after a magic are rejected with few reads', async () => {
    const next = random(99);
    const noise = Uint8Array.from({ length: 4 << 20 }, () => Math.floor(next() * 256));
    for (const head of [
      'fLaC',
      'RIFF\0\0\0\0WAVE',
      'FORM\0\0\0\0AIFC',
      'caff\0\x01\0\0',
      '\0\0\0\x20ftypisom',
      'OggS\0\x02',
      '\x1aE\xdf\xa3\x80\x18S\x80g\xff',
      'ID3\x04\0\0\0\0\0\0',
      '',
    ]) {
      const file = concat(
        Uint8Array.from(head, (c) => c.charCodeAt(0)),
        noise,
      );
      const source = memorySource(file);
      expect(await probeAudio(source, ports.decoder)).toMatchObject({ ok: false });
      expect(source.reads.length).toBeLessThan(20);
    }
  });

  it('with false headers are probed in bounded time', async () => {
    // Every fourth byte starts a valid MP3 header; none is followed by another at the right distance.
    const storm = new Uint8Array(3 << 20);
    for (let i = 0; i < storm.length; i += 4) storm.set([0xff, 0xfb, 0x90 + ((i >> 2) % 5) * 16, 0x00], i);
    const flacStorm = concat(
      flacFile(tone16).subarray(0, 42),
      storm.map((_, i) => (i % 2 ? 0xf8 : 0xff)),
    );
    // Complete FLAC headers with right checksums, all with the same number, without frames.
    const header = flacHeader(0, { channels: 8, blockSamples: 65535 });
    const frame = flacFrames(new Int16Array(65535 * 8), { channels: 8, blockSamples: 65535 })[0].subarray(0, 8);
    const headerStorm = new Uint8Array(header.length + 300_000 * frame.length);
    headerStorm.set(header);
    for (let i = header.length; i < headerStorm.length; i += frame.length) headerStorm.set(frame, i);
    for (const file of [storm, concat(mp3Frames(10), storm), flacStorm, headerStorm]) {
      const started = performance.now();
      await probeAudio(memorySource(file), ports.decoder);
      expect(performance.now() - started).toBeLessThan(15_000);
    }
  });

  it('with empty chunks are rejected with few reads', async () => {
    const file = new Uint8Array(8 << 20);
    file.set(wavFile({ sampleRateHz: 16000, channels: 1, tag: 1, bits: 16 }, new Uint8Array(0)).subarray(0, 36));
    const source = memorySource(file);
    expect(await probeAudio(source, ports.decoder)).toMatchObject({ ok: false, error: { kind: 'no_samples' } });
    expect(source.reads.length).toBeLessThan(5);
  });
});
