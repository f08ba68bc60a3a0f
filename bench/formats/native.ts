import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FormatCase } from './cases.ts';

/** Longest raw decode of ffmpeg taken, bytes. */
const MAX_OUTPUT_BYTES = 1 << 30;

/** First line of what the tool says of its version; undefined when it is not installed. */
export function toolVersion(tool: string): string | undefined {
  try {
    return execFileSync(tool, ['-version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')[0]
      .trim();
  } catch {
    return undefined;
  }
}

/** Whether a tool is there, whatever it says to a question for help. */
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

/** Speech at the given rate, with channels that differ in loudness and delay, as a WAV file of 24 bits. */
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

/** Codes the source; the path of the file. */
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

/** ffmpeg decodes layer II in 16 bits unless told otherwise. */
function decoderOf(path: string): readonly string[] {
  const entry = ['-v', 'error', '-select_streams', 'a:0', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0', path];
  return execFileSync('ffprobe', entry, { encoding: 'utf8' }).trim().split('\n')[0] === 'mp2'
    ? ['-c:a', 'mp2float']
    : [];
}

/** Channels counted when nobody says which they are: a layout that ffmpeg guesses would count too. */
const NO_GUESS = ['-guess_layout_max', '0'];
const EXTENSIBLE = 0xfffe;
/** Number of the low-frequency channel's bit in a mask. */
const EFFECTS = 3;

export interface NativeSound {
  readonly mono: Float32Array;
  readonly rateHz: number;
  readonly channels: number;
}

/**
 * A float WAV file of ffmpeg's as mono: the mean of its channels without low-frequency effects, where its mask tells
 * them.
 */
export function monoOfWav(bytes: Buffer): NativeSound {
  const channels = bytes.readUInt16LE(22);
  const mask = bytes.readUInt16LE(20) === EXTENSIBLE ? bytes.readUInt32LE(40) : 0;
  const named = Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (mask >>> bit) & 1);
  const heard = Array.from({ length: channels }, (_, c) => c).filter((c) => channels <= 2 || named[c] !== EFFECTS);
  const interleaved = floats(bytes.subarray(bytes.indexOf('data', 36, 'latin1') + 8));
  const mono = new Float32Array(Math.floor(interleaved.length / channels));
  for (let i = 0; i < mono.length; i++) {
    let sum = 0;
    for (const c of heard) sum += interleaved[i * channels + c];
    mono[i] = sum / heard.length;
  }
  return { mono, rateHz: bytes.readUInt32LE(24), channels };
}

/** What ffmpeg decodes a file to: mono at its own rate. */
export function decodeNative(path: string): NativeSound {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-native-'));
  const wav = join(folder, 'native.wav');
  ffmpeg(...decoderOf(path), ...NO_GUESS, '-i', path, '-vn', '-c:a', 'pcm_f32le', '-rf64', 'never', wav);
  const bytes = readFileSync(wav);
  rmSync(folder, { recursive: true });
  return monoOfWav(bytes);
}
