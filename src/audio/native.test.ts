import { describe, expect, it } from 'vitest';
import { monoOfWav } from '../../bench/formats/decodings.ts';
import {
  audioPorts,
  type Decoded,
  ffmpeg,
  hasTool,
  memorySource,
  outputSampleCount,
  probeAudio,
  readAll,
  readRange,
  readSourceRate,
  testSignal,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { type EditEntry, EMPTY, withEdits } from '../../test/helpers/mp4.ts';
import { wav16 } from '../../test/helpers/wav.ts';

/** Complete decodes compared with ffmpeg; skipped if it is not installed. */
const isInstalled = hasTool('ffmpeg');
const ports = audioPorts();

async function indexOf(file: Uint8Array): Promise<Decoded> {
  const probed = await probeAudio(memorySource(file), ports.decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return probed.value;
}

/** Output of ffmpeg for a file, mono at its own rate. */
function nativeMono(file: Uint8Array, channels: number, inputArgs: readonly string[] = []): Float32Array {
  const decoded = monoOfWav(Buffer.from(ffmpeg(file, ['-f', 'wav', '-c:a', 'pcm_f32le', '-rf64', 'never'], inputArgs)));
  expect(decoded.channels).toBe(channels);
  return decoded.mono;
}

/** Delay of libopus. */
const OPUS_DELAY_SAMPLES = 312;

const source = (rateHz: number, channels: number, seconds = 7.3) =>
  wav16(testSignal(rateHz, channels, seconds), rateHz, channels);

describe.skipIf(!isInstalled)('compared with ffmpeg', () => {
  const wavs: [string, number, number][] = [
    ['pcm_u8', 22050, 1],
    ['pcm_s16le', 44100, 2],
    ['pcm_s24le', 48000, 6],
    ['pcm_s32le', 96000, 1],
    ['pcm_f32le', 8000, 2],
    ['pcm_f64le', 11025, 1],
    ['pcm_alaw', 8000, 1],
    ['pcm_mulaw', 16000, 2],
  ];
  it.each(wavs)('WAV %s, %i Hz, %i channels: decodes to the same samples', async (codec, rateHz, channels) => {
    for (const extra of [[], ['-rf64', 'always']]) {
      const file = ffmpeg(source(rateHz, channels), ['-c:a', codec, ...extra, '-f', 'wav']);
      const index = await indexOf(file);
      expect(index).toMatchObject({ format: 'wav', sampleRateHz: rateHz, channels });
      expect(worstDifference(await readSourceRate(file, index, ports), nativeMono(file, channels))).toBeLessThan(1e-7);
    }
  });

  const flacs: [string, number, number, string[]][] = [
    ['16 bits', 44100, 2, []],
    ['24 bits', 96000, 2, ['-sample_fmt', 's32']],
    ['8 channels', 48000, 8, []],
    ['level 12', 16000, 1, ['-compression_level', '12']],
    ['level 0', 8000, 1, ['-compression_level', '0']],
    ['an odd rate', 12345, 1, []],
  ];
  it.each(flacs)('FLAC, %s: decodes to the same samples', async (_name, rateHz, channels, args) => {
    const file = ffmpeg(source(rateHz, channels), [...args, '-f', 'flac']);
    const index = await indexOf(file);
    expect(index).toMatchObject({ format: 'flac', sampleRateHz: rateHz, channels });
    expect(index.warning).toBeUndefined();
    expect(worstDifference(await readSourceRate(file, index, ports), nativeMono(file, channels))).toBeLessThan(1e-7);
  });

  const mp3s: [string, number, number, string[]][] = [
    ['MPEG-1, constant', 44100, 2, ['-b:a', '128k']],
    ['MPEG-1, variable', 48000, 2, ['-q:a', '5']],
    ['MPEG-1, 32 kbit/s', 32000, 1, ['-b:a', '32k']],
    ['MPEG-1, 320 kbit/s', 44100, 2, ['-b:a', '320k']],
    ['MPEG-2', 22050, 2, ['-b:a', '64k']],
    ['MPEG-2, 8 kbit/s', 24000, 1, ['-b:a', '8k']],
    ['MPEG-2.5', 8000, 1, ['-b:a', '16k']],
    ['no tag frame', 44100, 2, ['-write_xing', '0']],
    ['ID3 tags', 16000, 1, ['-metadata', `title=${'long '.repeat(500)}`, '-write_id3v1', '1']],
    ['no bit reservoir', 44100, 2, ['-reservoir', '0', '-b:a', '96k']],
  ];
  it.each(mp3s)('MP3, %s: decodes to the same samples', async (_name, rateHz, channels, args) => {
    const file = ffmpeg(source(rateHz, channels), [...args, '-f', 'mp3']);
    const index = await indexOf(file);
    expect(index).toMatchObject({ format: 'mp3', sampleRateHz: rateHz, channels });
    expect(index.warning).toBeUndefined();
    const expected = nativeMono(file, channels);
    expect(index.totalSamples).toBe(expected.length);
    // Native code sums in another order: 2e-6 is −114 dBFS.
    expect(worstDifference(await readSourceRate(file, index, ports), expected)).toBeLessThan(2e-6);
  });

  it('truncated MP3: decodes to the same samples', async () => {
    const file = ffmpeg(source(44100, 2), ['-b:a', '128k', '-f', 'mp3']);
    const cut = file.slice(0, file.length - 30_100);
    const index = await indexOf(cut);
    expect(index.warning).toMatch(/is incomplete|is shorter than/);
    const samples = await readSourceRate(cut, index, ports);
    const expected = nativeMono(cut, 2);
    // ffmpeg may decode the incomplete frame at the end.
    expect(Math.abs(samples.length - expected.length)).toBeLessThanOrEqual(1152);
    const common = Math.min(samples.length, expected.length) - 1152;
    expect(worstDifference(samples.subarray(0, common), expected.subarray(0, common))).toBeLessThan(2e-6);
  });

  it('MP3: has no offset to the encoded recording', async () => {
    const signal = testSignal(44100, 1, 5);
    const file = ffmpeg(wav16(signal, 44100), ['-b:a', '192k', '-f', 'mp3']);
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(signal.length);
    const samples = await readSourceRate(file, index, ports);
    const errorAt = (shift: number) => {
      let sum = 0;
      for (let i = 5000; i < signal.length - 5000; i++) sum += (samples[i + shift] - signal[i]) ** 2;
      return sum;
    };
    const errors = [-3, -2, -1, 0, 1, 2, 3].map(errorAt);
    expect(errors.indexOf(Math.min(...errors))).toBe(3);
  });

  const long: [string, string, string[]][] = [
    ['AAC in M4A', 'mp4', ['-c:a', 'aac', '-b:a', '24k']],
    [
      'AAC in fragments',
      'mp4',
      ['-c:a', 'aac', '-b:a', '24k', '-movflags', 'frag_keyframe+empty_moov', '-frag_duration', '2000000'],
    ],
    [
      'AAC in an index and later fragments',
      'mp4',
      ['-c:a', 'aac', '-b:a', '24k', '-movflags', 'frag_keyframe', '-frag_duration', '32000000'],
    ],
    ['AAC in Matroska', 'matroska', ['-c:a', 'aac', '-b:a', '24k']],
    ['AAC in MPEG-TS', 'mpegts', ['-c:a', 'aac', '-b:a', '24k']],
    ['AAC in LATM in MPEG-TS', 'mpegts', ['-c:a', 'aac', '-b:a', '24k', '-mpegts_flags', 'latm']],
    ['Opus in MPEG-TS', 'mpegts', ['-c:a', 'libopus', '-b:a', '16k']],
    ['Opus in WebM', 'webm', ['-c:a', 'libopus', '-b:a', '16k']],
    ['Opus in OGG', 'ogg', ['-c:a', 'libopus', '-b:a', '12k', '-application', 'voip']],
    ['Vorbis in OGG', 'ogg', ['-c:a', 'libvorbis']],
  ];
  it.each(long)('%s, 215 s: decodes to the same samples, also from checkpoints', async (_name, container, args) => {
    const file = ffmpeg(source(8000, 1, 215), [...args, '-f', container]);
    const index = await indexOf(file);
    // ffmpeg plays the padding at the end of MP4, and the samples that Opus in MPEG-TS marks to be cut at both ends.
    const trimmed = index.format === 'mpeg-ts' && index.codec === 'opus';
    const expected = nativeMono(file, 1).subarray(trimmed ? OPUS_DELAY_SAMPLES : 0);
    const isPadded = container === 'mp4' || trimmed;
    const ours = await readSourceRate(file, index, ports);
    expect(expected.length - ours.length).toBeGreaterThanOrEqual(container === 'mp4' ? -1 : 0);
    expect(expected.length - ours.length).toBeLessThan(isPadded ? 1024 : 1);
    // Up to the first restart of decoders. After 5 s ffmpeg 5.1 decodes some Opus packets in another way.
    const compared = (index.codec === 'opus' ? 4.8 : 89) * index.sampleRateHz;
    expect(worstDifference(ours.subarray(0, compared), expected.subarray(0, compared))).toBeLessThan(2e-6);
    const whole = await readAll(
      file,
      ports,
      [3.3, 89.99, 100, 150, 198, 214].map((seconds) => seconds * 16_000),
    );
    for (const checkpoint of whole.checkpoints) {
      expect(checkpoint.restart !== undefined).toBe(checkpoint.sample > 92 * 16_000);
      const rest = await readAll(file, ports, [], checkpoint);
      expect(worstDifference(rest.samples, whole.samples.subarray(checkpoint.sample))).toBe(0);
      expect(rest.end).toEqual(whole.end);
    }
  });

  it('MP4 with several edits, 215 s: plays the edited spans, from any start', async () => {
    const file = ffmpeg(source(8000, 1, 215), ['-c:a', 'aac', '-b:a', '24k', '-f', 'mp4']);
    // Seconds of the media, before and after the first restart of a decoder.
    const starts = [3, undefined, 20, 35, 80, 110, 205];
    const entries = starts.map((at): EditEntry => [5000, at === undefined ? EMPTY : at * 8000]);
    const edited = withEdits(file, ...entries);
    const index = await indexOf(edited);
    expect(index.totalSamples).toBe(starts.length * 40_000);
    const ours = await readSourceRate(edited, index, ports);
    const whole = withEdits(file, [0, 0]);
    const media = await readSourceRate(whole, await indexOf(whole), ports);
    const native = nativeMono(file, 1, ['-ignore_editlist', '1']);
    for (const [i, at] of starts.entries()) {
      const part = ours.subarray(i * 40_000, (i + 1) * 40_000);
      const expected = at === undefined ? new Float32Array(40_000) : media.subarray(at * 8000, at * 8000 + 40_000);
      expect(worstDifference(part, expected)).toBe(0);
      if (at === undefined || at > 80) continue;
      expect(worstDifference(part, native.subarray(at * 8000, at * 8000 + 40_000))).toBeLessThan(2e-6);
    }
    for (const seconds of [1, 4.9, 7, 12, 24.9, 26, 31, 34]) {
      const start = Math.round(seconds * 8000);
      expect(worstDifference(await readSourceRate(edited, index, ports, start), ours.subarray(start))).toBe(0);
    }
  });

  it('resampling to 16 kHz: gives the same signal', async () => {
    for (const rateHz of [8000, 22050, 44100, 48000]) {
      const file = source(rateHz, 1, 4);
      const index = await indexOf(file);
      const count = outputSampleCount(index);
      const ours = await readRange(file, index, ports, 0, count);
      const raw = ffmpeg(file, ['-af', 'aresample=16000:filter_size=128', '-f', 'f32le']);
      const theirs = new Float32Array(raw.buffer, raw.byteOffset, raw.byteLength >> 2);
      expect(Math.abs(theirs.length - count)).toBeLessThanOrEqual(1);
      expect(worstDifference(ours.subarray(2000, count - 2000), theirs.subarray(2000, count - 2000))).toBeLessThan(
        5e-4,
      );
    }
  });
});
