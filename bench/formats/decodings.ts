import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AudioResult, type ByteSource, SAMPLE_RATE_HZ } from '../../src/audio/audio-ports.ts';
import { BlockReader } from '../../src/audio/block-reader.ts';
import type { Part } from '../../src/audio/container.ts';
import { Decoding } from '../../src/audio/decode.ts';
import { type AudioPorts, type Checkpoint, openPart, Recording } from '../../src/audio/recording.ts';
import type { FormatCase } from './cases.ts';

/** Comparison of two decodes of a recording. */
export interface Comparison {
  /** Signal-to-noise ratio in dB at the best offset; infinite if all samples are equal. */
  readonly snrDb: number;
  /** Length of ours minus that of the reference. */
  readonly extraSamples: number;
  /** Delay of ours, samples. */
  readonly offsetSamples: number;
}

/** Largest offset of the search, samples in either direction. */
const MAX_OFFSET = 4096;
/** Samples that the search for the offset compares. */
const WINDOW = 16384;
/** At this ratio the offset is 0 without a search. */
const CLEAR_SNR_DB = 20;

/** Compares `ours` with `reference`, both mono at one rate. */
export function compare(ours: Float32Array, reference: Float32Array): Comparison {
  const atZero = snrDb(ours, reference, 0);
  const offsetSamples = atZero >= CLEAR_SNR_DB ? 0 : bestOffset(ours, reference);
  return {
    snrDb: offsetSamples === 0 ? atZero : snrDb(ours, reference, offsetSamples),
    extraSamples: ours.length - reference.length,
    offsetSamples,
  };
}

/** Ratio of the powers of `reference` and of the difference, where both exist, with `ours` advanced by `offset`. */
function snrDb(ours: Float32Array, reference: Float32Array, offset: number): number {
  const from = Math.max(0, -offset);
  const to = Math.min(reference.length, ours.length - offset);
  let signal = 0;
  let noise = 0;
  for (let i = from; i < to; i++) {
    signal += reference[i] ** 2;
    noise += (reference[i] - ours[i + offset]) ** 2;
  }
  if (noise === 0) return to > from ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return 10 * Math.log10(signal / noise);
}

/** Offset with the largest correlation over a window in the middle. */
function bestOffset(ours: Float32Array, reference: Float32Array): number {
  const length = Math.min(WINDOW, reference.length);
  const start = Math.floor((reference.length - length) / 2);
  let best = 0;
  let bestSum = Number.NEGATIVE_INFINITY;
  for (let offset = -MAX_OFFSET; offset <= MAX_OFFSET; offset++) {
    let sum = 0;
    const from = Math.max(start, -offset);
    const to = Math.min(start + length, ours.length - offset);
    for (let i = from; i < to; i++) sum += reference[i] * ours[i + offset];
    if (sum > bestSum) {
      bestSum = sum;
      best = offset;
    }
  }
  return best;
}

/** Largest difference of two decodes, relative to full scale; 1 for different lengths. */
export function worstDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return 1;
  let worst = 0;
  for (let i = 0; i < a.length; i++) worst = Math.max(worst, Math.abs(a[i] - b[i]));
  return worst;
}

/** Maximum of ffmpeg's raw output. */
const MAX_OUTPUT_BYTES = 1 << 30;

/** First line of the tool's version text; undefined if it is not installed. */
export function toolVersion(tool: string): string | undefined {
  try {
    return execFileSync(tool, ['-version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')[0]
      .trim();
  } catch {
    return undefined;
  }
}

/** Whether a tool is installed; the exit status of `--help` does not matter. */
export function isInstalled(tool: string): boolean {
  return (
    (spawnSync(tool, ['--help'], { stdio: 'ignore' }).error as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT'
  );
}

const ffmpeg = (...args: readonly string[]): Buffer =>
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...args], {
    maxBuffer: MAX_OUTPUT_BYTES,
    stdio: ['ignore', 'pipe', 'pipe'],
  });

const floats = (bytes: Buffer): Float32Array =>
  new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength - (bytes.byteLength % 4)));

/** Writes speech at the given rate, with channels of different loudness and delay, as a 24-bit WAV file. */
export function writeSource(path: string, speech: string, seconds: number, rateHz: number, channels: number): void {
  const mono = floats(
    ffmpeg(
      '-stream_loop',
      '-1',
      '-i',
      speech,
      '-t',
      String(seconds),
      '-ar',
      String(rateHz),
      '-ac',
      '1',
      '-f',
      'f32le',
      '-',
    ),
  );
  const interleaved = new Float32Array(mono.length * channels);
  for (let c = 0; c < channels; c++) {
    for (let i = 37 * c; i < mono.length; i++) interleaved[i * channels + c] = mono[i - 37 * c] * 0.9 ** c;
  }
  const raw = `${path}.f32`;
  writeFileSync(raw, Buffer.from(interleaved.buffer));
  ffmpeg('-f', 'f32le', '-ar', String(rateHz), '-ac', String(channels), '-i', raw, '-c:a', 'pcm_s24le', path);
  rmSync(raw);
}

/** Encodes the source. @returns path of the file */
export function encode(folder: string, source: string, { tool, encode, extension }: FormatCase): string {
  const path = join(folder, `coded.${extension}`);
  if (!tool) ffmpeg('-i', source, ...encode, path);
  else {
    const files: Readonly<Record<string, string>> = { IN: source, OUT: path };
    execFileSync(
      tool,
      encode.map((argument) => files[argument] ?? argument),
      { stdio: 'ignore' },
    );
  }
  return path;
}

/** ffmpeg's default decoder of layer II has 16 bits. */
function decoderOf(path: string): readonly string[] {
  const entry = ['-v', 'error', '-select_streams', 'a:0', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0', path];
  return execFileSync('ffprobe', entry, { encoding: 'utf8' }).trim().split('\n')[0] === 'mp2'
    ? ['-c:a', 'mp2float']
    : [];
}

/** Keeps ffmpeg from guessing a channel layout: a guessed low-frequency channel would be left out. */
const NO_GUESS = ['-guess_layout_max', '0'];
const EXTENSIBLE = 0xfffe;
/** Bit of the low-frequency channel in a mask. */
const LOW_FREQUENCY_BIT = 3;

interface NativeSound {
  readonly mono: Float32Array;
  readonly rateHz: number;
  readonly channels: number;
}

/**
 * A float WAV file of ffmpeg as mono: the mean of its channels, without the low-frequency channel if the mask names it.
 */
export function monoOfWav(bytes: Buffer): NativeSound {
  const channels = bytes.readUInt16LE(22);
  const mask = bytes.readUInt16LE(20) === EXTENSIBLE ? bytes.readUInt32LE(40) : 0;
  const named = Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (mask >>> bit) & 1);
  const averaged = Array.from({ length: channels }, (_, c) => c).filter(
    (c) => channels <= 2 || named[c] !== LOW_FREQUENCY_BIT,
  );
  const interleaved = floats(bytes.subarray(bytes.indexOf('data', 36, 'latin1') + 8));
  const mono = new Float32Array(Math.floor(interleaved.length / channels));
  for (let i = 0; i < mono.length; i++) {
    let sum = 0;
    for (const c of averaged) sum += interleaved[i * channels + c];
    mono[i] = sum / averaged.length;
  }
  return { mono, rateHz: bytes.readUInt32LE(24), channels };
}

/** Decodes a file with ffmpeg. @returns mono at the file's rate */
export function decodeNative(path: string): NativeSound {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-native-'));
  const wav = join(folder, 'native.wav');
  ffmpeg(...decoderOf(path), ...NO_GUESS, '-i', path, '-vn', '-c:a', 'pcm_f32le', '-rf64', 'never', wav);
  const bytes = readFileSync(wav);
  rmSync(folder, { recursive: true });
  return monoOfWav(bytes);
}

async function collect(blocks: AsyncIterable<Float32Array>): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for await (const block of blocks) parts.push(block.slice());
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let filled = 0;
  for (const part of parts) {
    all.set(part, filled);
    filled += part.length;
  }
  return all;
}

/** Opens a recording with the service's code. */
export const openOurs = (source: ByteSource, ports: AudioPorts): Promise<AudioResult<Part>> =>
  openPart(new BlockReader(source), ports.decoder);

/** Decodes a recording with the service's code. @returns mono at the recording's rate */
export async function decodeOurs(source: ByteSource, ports: AudioPorts): Promise<Float32Array> {
  const reader = new BlockReader(source);
  const part = await openPart(reader, ports.decoder);
  if (!part.ok) throw new Error(part.error.message);
  return collect((await Decoding.open(reader, part.value)).blocks());
}

interface Reads {
  readonly whole: Float32Array;
  /** `whole` with its end read by a resumed reader. */
  readonly resumed: Float32Array;
  /** Seconds of audio per second, decoding and resampling to 16 kHz in one run. */
  readonly speed: number;
}

/** Position of the resumed reader: after the first decoder restart. */
const RESUME_SHARE = 0.95;
/** Number of reads, of which the fastest counts. */
const RUNS = 2;

/** Reads the recording at 16 kHz as a whole, and interrupted and resumed. */
export async function readBothWays(source: ByteSource, ports: AudioPorts): Promise<Reads> {
  let whole: Float32Array = new Float32Array(0);
  let bestMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now();
    whole = await collect((await open(source, ports)).samples());
    bestMs = Math.min(bestMs, performance.now() - start);
  }
  const startSample = Math.floor(whole.length * RESUME_SHARE);
  const first = await open(source, ports);
  let passed = 0;
  for await (const block of first.samples()) {
    passed += block.length;
    if (passed >= startSample) break;
  }
  const checkpoint: Checkpoint = JSON.parse(JSON.stringify(first.checkpointAt(startSample)));
  const resumed = whole.slice();
  resumed.set(await collect((await open(source, ports, checkpoint)).samples()), startSample);
  return { whole, resumed, speed: whole.length / SAMPLE_RATE_HZ / (bestMs / 1000) };
}

async function open(source: ByteSource, ports: AudioPorts, from?: Checkpoint): Promise<Recording> {
  const opened = await Recording.open(source, ports, from);
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}
