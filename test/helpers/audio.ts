import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AudioResult,
  type ByteSource,
  type DecoderPort,
  fail,
  type MediaPort,
  ok,
} from '../../src/audio/audio-ports.ts';
import { BlockReader } from '../../src/audio/block-reader.ts';
import { Decoding, type Restart } from '../../src/audio/decode.ts';
import { type AudioPorts, type Checkpoint, openPart, Recording, type RecordingEnd } from '../../src/audio/recording.ts';
import { createDecoders } from '../../src/platform/wasm/codecs.ts';
import { createDsp } from '../../src/platform/wasm/dsp.ts';
import { createMedia } from '../../src/platform/wasm/media.ts';

const wasm = (path: string) => new WebAssembly.Module(readFileSync(new URL(`../../wasm/${path}`, import.meta.url)));

/** The real decoders and resampler. */
export function audioPorts(): AudioPorts {
  return { decoder: createDecoders(wasm('codecs/codecs.wasm')), resampler: createDsp(wasm('dsp/dsp.wasm')).resampler };
}

/** The real demuxers and decoders. */
export const mediaPort = (): MediaPort => createMedia(wasm('media/media.wasm'));

export interface CountingSource extends ByteSource {
  /** Reads so far: streams have only an offset, ranges also a length. */
  readonly reads: { readonly offset: number; readonly length?: number }[];
}

const CHUNK_BYTES = 50_000;

/** Bytes in memory. Reuses its views, as `ByteSource` allows, and fails if a closed stream is read. */
export function memorySource(bytes: Uint8Array, canSeek = true): CountingSource {
  const reads: { offset: number; length?: number }[] = [];
  let stream = 0;
  return {
    sizeBytes: bytes.length,
    canSeek,
    reads,
    async open(offset) {
      reads.push({ offset });
      const own = ++stream;
      const buffer = new Uint8Array(CHUNK_BYTES);
      let at = offset;
      return {
        async read() {
          if (own !== stream) throw new Error('a closed stream is read');
          const part = bytes.subarray(at, at + CHUNK_BYTES);
          if (part.length === 0) return undefined;
          buffer.set(part);
          at += part.length;
          return buffer.subarray(0, part.length);
        },
        close() {
          stream++;
        },
      };
    },
    async read(offset, length) {
      if (!canSeek) throw new Error('the source cannot seek');
      reads.push({ offset, length });
      return bytes.slice(offset, offset + length);
    },
  };
}

/** A source that computes its bytes when they are read, for files that are too long for memory. */
export function madeSource(sizeBytes: number, make: (offset: number, length: number) => Uint8Array): ByteSource {
  const piece = (offset: number, length: number) => make(offset, Math.min(length, sizeBytes - offset));
  return {
    sizeBytes,
    canSeek: true,
    async open(offset) {
      let at = offset;
      return {
        async read() {
          if (at >= sizeBytes) return undefined;
          const part = piece(at, 1 << 20);
          at += part.length;
          return part;
        },
        close() {},
      };
    },
    read: async (offset, length) => piece(offset, length),
  };
}

export async function collect(blocks: AsyncIterable<Float32Array>): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for await (const block of blocks) parts.push(block.slice());
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Facts of a completely decoded recording. */
export interface Decoded {
  readonly format: string;
  readonly codec: string;
  readonly sampleRateHz: number;
  readonly channels: number;
  /** At the source's rate. */
  readonly totalSamples: number;
  readonly durationSeconds: number;
  readonly warning?: string;
}

/** Opens and decodes a whole recording. */
export async function probeAudio(source: ByteSource, decoder: DecoderPort): Promise<AudioResult<Decoded>> {
  if (source.sizeBytes === 0) return fail('empty', 'The file is empty.');
  const reader = new BlockReader(source);
  const part = await openPart(reader, decoder);
  if (!part.ok) return part;
  const { format, codec, sampleRateHz, channels, displayName } = part.value;
  const decoding = await Decoding.open(reader, part.value);
  for await (const _ of decoding.blocks());
  const { totalSamples, warning } = decoding.end;
  if (totalSamples === 0) return fail('no_samples', `${displayName} has no samples in it.`);
  const durationSeconds = totalSamples / sampleRateHz;
  return ok({ format, codec, sampleRateHz, channels, totalSamples, durationSeconds, ...(warning && { warning }) });
}

/** Length of the recording in samples at 16 kHz. */
export const outputSampleCount = ({ totalSamples, sampleRateHz }: Decoded): number =>
  Math.ceil((totalSamples * 16000) / sampleRateHz);

/** Samples of a range at 16 kHz, decoded by another process from a checkpoint. */
export async function readRange(
  bytes: Uint8Array,
  _index: Decoded,
  ports: AudioPorts,
  startSample: number,
  endSample: number,
): Promise<Float32Array> {
  const whole = await openRecording(bytes, ports);
  let passed = 0;
  for await (const block of whole.samples()) {
    passed += block.length;
    if (passed >= startSample) break;
  }
  const checkpoint = JSON.parse(JSON.stringify(whole.checkpointAt(startSample)));
  const rest = await Recording.open(memorySource(bytes), ports, checkpoint);
  if (!rest.ok) throw new Error(rest.error.message);
  return (await collect(rest.value.samples())).slice(0, endSample - startSample);
}

export async function openRecording(bytes: Uint8Array, ports: AudioPorts, from?: Checkpoint): Promise<Recording> {
  const opened = await Recording.open(memorySource(bytes), ports, from);
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}

export interface Reading {
  /** 16 kHz. */
  readonly samples: Float32Array;
  readonly end: AudioResult<RecordingEnd>;
  /** As other processes get them: one for each requested position before the end. */
  readonly checkpoints: readonly Checkpoint[];
}

/**
 * Reads a recording to its end and takes checkpoints.
 *
 * @param places positions of the checkpoints, ascending, samples at 16 kHz
 */
export async function readAll(
  bytes: Uint8Array,
  ports: AudioPorts,
  places: readonly number[] = [],
  from?: Checkpoint,
): Promise<Reading> {
  const recording = await openRecording(bytes, ports, from);
  const checkpoints: Checkpoint[] = [];
  let passed = from?.sample ?? 0;
  const noting = async function* () {
    for await (const block of recording.samples()) {
      yield block;
      passed += block.length;
      while (checkpoints.length < places.length && places[checkpoints.length] <= passed) {
        const checkpoint = recording.checkpointAt(places[checkpoints.length]);
        checkpoints.push(JSON.parse(JSON.stringify(checkpoint)));
      }
    }
  };
  const samples = await collect(noting());
  recording.close();
  return { samples, end: recording.end, checkpoints };
}

/**
 * Decodes to mono at the source's rate, from `startSample` to the end. If `startSample` is not 0, another process
 * continues there from a checkpoint.
 */
export async function readSourceRate(
  bytes: Uint8Array,
  _index: Decoded,
  ports: AudioPorts,
  startSample = 0,
): Promise<Float32Array> {
  const decoding = async (resume?: Restart) => {
    const reader = new BlockReader(memorySource(bytes));
    const part = await openPart(reader, ports.decoder);
    if (!part.ok) throw new Error(part.error.message);
    return Decoding.open(reader, part.value, resume);
  };
  const first = await decoding();
  if (startSample === 0) return collect(first.blocks());
  let passed = 0;
  for await (const block of first.blocks()) {
    passed += block.length;
    if (passed >= startSample) break;
  }
  const restart = first.restartFor(startSample);
  const second = await decoding(restart && (JSON.parse(JSON.stringify(restart)) as Restart));
  return collect(second.blocks(startSample));
}

/** Deterministic numbers in 0…1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A voice-like test signal: partials of a gliding tone, with pauses; interleaved, −1…1. */
export function testSignal(sampleRateHz: number, channels: number, seconds: number): Float32Array {
  const frames = Math.round(sampleRateHz * seconds);
  const signal = new Float32Array(frames * channels);
  for (let i = 0; i < frames; i++) {
    const t = i / sampleRateHz;
    const loudness = 0.5 + 0.5 * Math.sin(2 * Math.PI * 0.7 * t);
    for (let c = 0; c < channels; c++) {
      const base = 2 * Math.PI * (150 + 20 * c + 30 * Math.sin(t)) * t;
      signal[i * channels + c] =
        0.4 * loudness * (Math.sin(base) + 0.5 * Math.sin(3 * base) + 0.2 * Math.sin(7 * base));
    }
  }
  return signal;
}

export function worstDifference(a: Float32Array, b: Float32Array): number {
  let worst = Math.abs(a.length - b.length);
  for (let i = 0; i < Math.min(a.length, b.length); i++) worst = Math.max(worst, Math.abs(a[i] - b[i]));
  return worst;
}

export const concat = (...parts: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

/** Whether a command of the system is installed; if not, prints once that its tests are skipped. */
export function hasTool(name: string): boolean {
  try {
    execFileSync(name, ['-version'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return true;
    console.warn(`${name} is not installed: comparisons with it are skipped`);
    return false;
  }
}

/** Runs ffmpeg on bytes. Uses files, because ffmpeg cannot write lengths and tags into a pipe. */
export function ffmpeg(
  input: Uint8Array,
  outputArgs: readonly string[],
  inputArgs: readonly string[] = [],
): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-ffmpeg-'));
  try {
    const [from, to] = [join(folder, 'in'), join(folder, 'out')];
    writeFileSync(from, input);
    execFileSync('ffmpeg', ['-v', 'error', ...inputArgs, '-i', from, ...outputArgs, to]);
    return new Uint8Array(readFileSync(to));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
