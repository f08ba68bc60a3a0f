import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  collect,
  concat,
  ffmpeg,
  mediaPort,
  memorySource,
  probeAudio,
  random,
  readSourceRate,
  testSignal,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { patched } from '../../test/helpers/bytes.ts';
import { RUNS_ALL_CASES } from '../../test/helpers/cases.ts';
import { type FormatReference, tenthsOf, windowOf } from '../../test/helpers/format-references.ts';
import { times } from '../../test/helpers/long-recordings.ts';
import { EMPTY, packetMovie, withEdits } from '../../test/helpers/mp4.ts';
import { mutate } from '../../test/helpers/mutate.ts';
import { pcm16, wav16, wavFile } from '../../test/helpers/wav.ts';
import { type AudioResult, type ByteSource, MEDIA_CODE, type MediaInstance, type MediaPort } from './audio-ports.ts';
import { isOutOfBounds } from './block-reader.ts';
import { type MediaEnd, type MediaOptions, MediaReader, type MediaSnapshot } from './media-reader.ts';
import { concatenated } from './memory.ts';

const folder = new URL('../../test/fixtures/formats/', import.meta.url);
const read = (name: string) => new Uint8Array(readFileSync(new URL(name, folder)));
const fixtures = readdirSync(folder).filter((name) => !/\.(sh|py|ts|json)$/.test(name));
const mediaFolder = new URL('../../test/fixtures/media/', import.meta.url);
const references: FormatReference[] = JSON.parse(readFileSync(new URL('references.json', mediaFolder), 'utf8'));
const ports = audioPorts();
const port = mediaPort();

const PCM = /^(wav|wav-rf64|aif[fc]|caf|mov|matroska)-(s8|u8|s16|s16le|s24|s24be|s32|f32|f64|alaw|mulaw|sowt)-/;
/** FFmpeg ignores the trimming in the control header of Opus: 312 samples at the start, 648 at the end. */
const UNTRIMMED = /^mpegts-opus/;

async function openReader(source: ByteSource, options: MediaOptions = {}, by: MediaPort = port): Promise<MediaReader> {
  const opened = await MediaReader.open(source, by, options);
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}

interface Read {
  readonly samples: Float32Array;
  readonly end: AudioResult<MediaEnd>;
}

async function readWhole(source: ByteSource, options: MediaOptions = {}): Promise<Read> {
  const reader = await openReader(source, options);
  const samples = await collect(reader.blocks());
  reader.close();
  return { samples, end: reader.end };
}

/** The samples of the reader that is in service. */
async function readToday(file: Uint8Array) {
  const probed = await probeAudio(memorySource(file), ports.decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return { facts: probed.value, samples: await readSourceRate(file, probed.value, ports) };
}

/** Some megabytes in each kind of container. */
const long: Record<string, () => Uint8Array> = {
  wav: () => wav16(testSignal(16_000, 1, 100), 16_000),
  mp3: () => concat(...times(40, read('mp3-44100-stereo.mp3'))),
  adts: () => concat(...times(40, read('adts-aac-16000-mono.aac'))),
  flac: () => ffmpeg(wav16(testSignal(44_100, 2, 30), 44_100, 2), ['-f', 'flac']),
  ogg: () => ffmpeg(wav16(testSignal(44_100, 2, 40), 44_100, 2), ['-f', 'ogg', '-c:a', 'libvorbis']),
  matroska: () => ffmpeg(wav16(testSignal(48_000, 2, 40), 48_000, 2), ['-f', 'matroska', '-c:a', 'aac']),
  'mpeg-ts': () => ffmpeg(wav16(testSignal(48_000, 2, 40), 48_000, 2), ['-f', 'mpegts', '-c:a', 'mp2']),
  'mp4, index last': () => ffmpeg(wav16(testSignal(48_000, 2, 40), 48_000, 2), ['-f', 'mp4', '-c:a', 'aac']),
  'mp4 in fragments': () =>
    ffmpeg(wav16(testSignal(48_000, 2, 40), 48_000, 2), [
      ...['-f', 'mp4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov', '-frag_duration', '2000000'],
    ]),
};
const made = new Map<string, Uint8Array>();
function longFile(name: string): Uint8Array {
  const file = made.get(name) ?? long[name]();
  made.set(name, file);
  return file;
}

describe('every format', () => {
  it.each(fixtures)('%s gives the samples of the reader in service', async (name) => {
    const file = read(name);
    const today = await readToday(file);
    const { samples, end } = await readWhole(memorySource(file));
    if (UNTRIMMED.test(name)) {
      expect(end).toEqual({ ok: true, value: { totalSamples: today.samples.length + 960 } });
      expect(worstDifference(samples.subarray(312, -648), today.samples)).toBeLessThan(2e-5);
      return;
    }
    expect(end).toEqual({ ok: true, value: { totalSamples: today.samples.length } });
    expect(worstDifference(samples, today.samples)).toBeLessThanOrEqual(PCM.test(name) ? 0 : 1e-7);
    const reader = await openReader(memorySource(file));
    const { format, codec, sampleRateHz } = today.facts;
    expect(reader.facts).toMatchObject({ format, codec, sampleRateHz });
    reader.close();
  });

  it.each(references)('$file, which only FFmpeg reads, gives the samples of native ffmpeg', async (reference) => {
    const file = new Uint8Array(readFileSync(new URL(reference.file, mediaFolder)));
    const reader = await openReader(memorySource(file));
    const samples = await collect(reader.blocks());
    reader.close();
    expect(reader.facts).toMatchObject({ sampleRateHz: reference.rateHz, channels: reference.channels });
    expect(reader.end).toEqual({ ok: true, value: { totalSamples: reference.totalSamples } });
    const { windowStart } = reference;
    const window = windowOf(reference);
    expect(worstDifference(samples.slice(windowStart, windowStart + window.length), window)).toBeLessThan(2e-5);
    for (const [i, value] of tenthsOf(samples).entries()) expect(value).toBeCloseTo(reference.tenths[i], 4);
  });

  it('reads one channel', async () => {
    const file = read('wav-f32-8000-6ch.wav');
    const whole = await readWhole(memorySource(file));
    const each = await Promise.all([0, 1, 2, 3, 4, 5].map((channel) => readWhole(memorySource(file), { channel })));
    // The fourth one has low-frequency effects.
    const heard = [0, 1, 2, 4, 5].map((channel) => each[channel].samples);
    const mean = whole.samples.map((_, i) => heard.reduce((sum, plane) => sum + plane[i], 0) / heard.length);
    expect(worstDifference(mean, whole.samples)).toBe(0);
    expect((await readWhole(memorySource(file), { channel: 6 })).samples.every((value) => value === 0)).toBe(true);
  });
});

it('replaces NaN and infinity of PCM by silence, and keeps its scale', async () => {
  const values = Float32Array.of(0.25, -1.5, Number.NaN, Number.NEGATIVE_INFINITY, 1);
  const options = { sampleRateHz: 8000, channels: 1, tag: 3, bits: 32 };
  const { samples } = await readWhole(memorySource(wavFile(options, new Uint8Array(values.buffer))));
  expect([...samples]).toEqual([0.25, -1.5, 0, 0, 1]);
});

describe('the clock', () => {
  const tone = testSignal(8000, 1, 1).map((value) => value * 32_767);
  const packets = Array.from({ length: 10 }, (_, i) => {
    const bytes = new Uint8Array(1600);
    const view = new DataView(bytes.buffer);
    for (let k = 0; k < 800; k++) view.setInt16(2 * k, tone[800 * i + k], true);
    return bytes;
  });
  const movie = packetMovie({
    ...{
      type: 'sowt',
      channels: 1,
      bits: 16,
      rateHz: 8000,
      timescale: 8000,
      ticksPerPacket: 800,
      packets,
      isIndexLast: true,
    },
  });

  it('begins with the silence and ends at the end that an edit list states', async () => {
    const { samples } = await readWhole(memorySource(movie));
    const edited = await readWhole(memorySource(withEdits(movie, [250, EMPTY], [500, 1600])));
    expect(edited.samples).toHaveLength(6000);
    expect(edited.samples.subarray(0, 2000).every((value) => value === 0)).toBe(true);
    expect(worstDifference(edited.samples.subarray(2000), samples.subarray(1600, 5600))).toBe(0);
  });
});

describe('durations rounded to a coarse clock', () => {
  // Frames of 23.2 ms, with durations of 23 ms and of 24 ms.
  it.each([23, 24])('of %i ms leave every sample in its place', async (ticksPerPacket) => {
    const samples = testSignal(11_025, 1, 30);
    const packets = Array.from({ length: 1290 }, (_, i) => pcm16(samples.subarray(256 * i, 256 * (i + 1))));
    const movie = packetMovie({
      ...{ type: 'sowt', channels: 1, bits: 16, rateHz: 11_025, timescale: 1000, ticksPerPacket, packets },
    });
    const { samples: read, end } = await readWhole(memorySource(movie));
    expect(end).toEqual({ ok: true, value: { totalSamples: 1290 * 256 } });
    expect(read).toHaveLength(1290 * 256);
  });
});

describe('a snapshot', () => {
  /** The samples of a file, and its snapshots with the number of samples before each. */
  async function withSnapshots(file: Uint8Array) {
    const reader = await openReader(memorySource(file));
    const snapshots: { readonly at: number; readonly snapshot: MediaSnapshot }[] = [];
    const parts: Float32Array[] = [];
    const keep = () => {
      const { memory, state } = reader.snapshot();
      const at = parts.reduce((sum, { length }) => sum + length, 0);
      snapshots.push({ at, snapshot: { memory, state: JSON.parse(JSON.stringify(state)) } });
    };
    keep();
    for await (const block of reader.blocks()) {
      parts.push(block.slice());
      keep();
    }
    reader.close();
    return { samples: concatenated(Float32Array, parts), end: reader.end, snapshots };
  }

  it.each(fixtures)('of %s gives the same bits in a new instance', async (name) => {
    const file = read(name);
    const { samples, end, snapshots } = await withSnapshots(file);
    for (const { at, snapshot } of snapshots.slice(0, RUNS_ALL_CASES ? -1 : 2)) {
      const rest = await readWhole(memorySource(file), { from: snapshot });
      expect(worstDifference(rest.samples, samples.subarray(at))).toBe(0);
      expect(rest.end).toEqual(end);
    }
  });

  it.each(Object.keys(long))('of a long file in %s gives the same bits in a new instance', async (name) => {
    const file = longFile(name);
    const { samples, end, snapshots } = await withSnapshots(file);
    expect(snapshots.length).toBeGreaterThan(10);
    for (const share of RUNS_ALL_CASES ? [0.1, 0.4, 0.8, 0.95] : [0.4, 0.9]) {
      const { at, snapshot } = snapshots[Math.floor(share * snapshots.length)];
      expect(snapshot.memory.length).toBeLessThan(16 << 20);
      const rest = await readWhole(memorySource(file), { from: snapshot });
      expect(worstDifference(rest.samples, samples.subarray(at))).toBe(0);
      expect(rest.end).toEqual(end);
    }
  });
});

describe('the block supply', () => {
  it.each(Object.keys(long))('with small blocks gives the same bits of a long file in %s', async (name) => {
    const file = longFile(name);
    const whole = await readWhole(memorySource(file));
    const source = memorySource(file);
    const small = await readWhole(source, { blockBytes: 10_000 });
    expect(worstDifference(small.samples, whole.samples)).toBe(0);
    expect(small.end).toEqual(whole.end);
    // The index at the end, and back.
    expect(source.reads.length).toBeLessThanOrEqual(name === 'mp4, index last' ? 3 : 1);
  });

  it.each(Object.keys(long).filter((name) => name !== 'mp4, index last'))(
    'reads a long file in %s once if the source cannot seek',
    async (name) => {
      const file = longFile(name);
      const source = memorySource(file, false);
      const { samples } = await readWhole(source);
      expect(source.reads).toEqual([{ offset: 0 }]);
      expect(samples).toHaveLength((await readWhole(memorySource(file))).samples.length);
    },
  );

  it('asks for a source that can seek if the index is last', async () => {
    const file = longFile('mp4, index last');
    const source = memorySource(file, false);
    await expect(openReader(source, { blockBytes: 10_000 })).rejects.toThrow('cannot go back');
  });
});

describe('a file that cannot be read', () => {
  const failureOf = async (file: Uint8Array) => {
    const opened = await MediaReader.open(memorySource(file), port);
    if (!opened.ok) return opened.error;
    await collect(opened.value.blocks());
    return opened.value.end.ok ? undefined : opened.value.end.error;
  };
  const text = (value: string) => new TextEncoder().encode(value);

  it.each<[string, () => Uint8Array, object]>([
    ['nothing', () => new Uint8Array(0), { kind: 'empty', message: 'The file is empty.' }],
    [
      'a page',
      () => text('<!doctype html><title>x</title>'),
      { kind: 'not_audio', message: 'The file is a web page, not audio.' },
    ],
    ['noise', () => Uint8Array.from({ length: 9000 }, (_, i) => (i * i * 7919) >> 3), { kind: 'not_audio' }],
    ['no samples', () => wav16([], 8000), { kind: 'no_samples', message: 'The WAV file has no samples in it.' }],
    [
      'pictures alone',
      () => ffmpeg(read('mp4-video-aac-44100-mono.mp4'), ['-an', '-c:v', 'copy', '-f', 'mp4']),
      { kind: 'no_samples', message: 'The MP4 file has no audio track.' },
    ],
    [
      'a codec that is missing',
      () => ffmpeg(read('wav-s16-16000-mono.wav'), ['-c:a', 'adpcm_yamaha', '-f', 'wav']),
      {
        kind: 'unsupported',
        message: 'The WAV file holds audio in adpcm-yamaha, which is not supported.',
        detail: 'Decoder not found',
      },
    ],
    [
      'encryption',
      () => patched(read('mov-s16le-16000-mono.mov'), 'sowt', 'enca'),
      { kind: 'unsupported', message: 'The MP4 file is encrypted, so it cannot be read.' },
    ],
    [
      'two rates',
      () => concat(read('adts-aac-16000-mono.aac'), read('adts-aac-44100-stereo.aac')),
      { kind: 'unsupported', message: 'The AAC file changes its sample rate or its channels in the middle.' },
    ],
    [
      'no index',
      () => read('mp4-aac-44100-stereo.m4a').slice(0, 20_000),
      { kind: 'corrupt', message: 'The MP4 file is damaged.', detail: 'Invalid data found when processing input' },
    ],
  ])('%s gives one error', async (_, make, error) => {
    expect(await failureOf(make())).toMatchObject(error);
  });
});

describe('mutated files', () => {
  const ROUNDS_OF_FIXTURE = RUNS_ALL_CASES ? 20 : 3;
  const MAX_STEPS = 100_000;
  const MAX_MEMORY_BYTES = 64 << 20;

  /** Counts the steps of the instances. */
  function watchedPort() {
    let steps = 0;
    let hasTrapped = false;
    let instance: MediaInstance | undefined;
    const create: MediaPort['create'] = (from) => {
      const created = port.create(from);
      const watch = (call: () => number) => {
        steps++;
        const result = call();
        hasTrapped ||= result === MEDIA_CODE.trapped;
        return result;
      };
      const [open, step] = [created.open.bind(created), created.step.bind(created)];
      created.open = (...args) => watch(() => open(...args));
      created.step = () => watch(step);
      instance = created;
      return created;
    };
    return { port: { create }, facts: () => ({ steps, hasTrapped, memoryBytes: instance?.copy().length ?? 0 }) };
  }

  it('of false OGG pages are read in bounded time', async () => {
    const page = new Uint8Array(27 + 255).fill(255);
    page.set(new TextEncoder().encode('OggS'));
    page.fill(0, 4, 6);
    const file = concat(read('ogg-opus-stereo.opus'), ...times(10_000, page));
    const started = performance.now();
    expect((await readWhole(memorySource(file))).samples).toHaveLength(144_000);
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it(`${ROUNDS_OF_FIXTURE} of each fixture give samples or an error in bounded steps and memory`, async () => {
    const next = random(62);
    const results = { samples: 0, errors: 0 };
    for (const name of fixtures) {
      for (let round = 0; round < ROUNDS_OF_FIXTURE; round++) {
        const file = mutate(read(name), next);
        const watched = watchedPort();
        try {
          const opened = await MediaReader.open(memorySource(file), watched.port);
          if (!opened.ok) {
            expect(opened.error.message).toMatch(/^[A-Z].{8,150}\.$/);
            results.errors++;
          } else {
            const samples = await collect(opened.value.blocks());
            expect(samples.every((value) => Number.isFinite(value))).toBe(true);
            results.samples++;
          }
        } catch (error) {
          if (!isOutOfBounds(error)) throw error;
          results.errors++;
        }
        const { steps, hasTrapped, memoryBytes } = watched.facts();
        expect({ name, round, hasTrapped }).toEqual({ name, round, hasTrapped: false });
        expect(steps).toBeLessThan(MAX_STEPS);
        expect(memoryBytes).toBeLessThan(MAX_MEMORY_BYTES);
      }
    }
    expect(results.samples).toBeGreaterThan(100);
    expect(results.errors).toBeGreaterThan(10);
  });
});
