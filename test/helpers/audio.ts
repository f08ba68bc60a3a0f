import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AudioIndex, type AudioPorts, BlockReader, type ByteSource, readSamples } from '../../src/audio/index.ts';
import { containerOf } from '../../src/audio/registry.ts';
import { createDecoders } from '../../src/platform/wasm/codecs.ts';
import { createDsp } from '../../src/platform/wasm/dsp.ts';

const wasm = (path: string) => new WebAssembly.Module(readFileSync(new URL(`../../wasm/${path}`, import.meta.url)));

/** The real decoders and the real resampler. */
export function audioPorts(): AudioPorts {
  return { decoder: createDecoders(wasm('codecs/codecs.wasm')), resampler: createDsp(wasm('dsp/dsp.wasm')).resampler };
}

export interface CountingSource extends ByteSource {
  readonly reads: { readonly offset: number; readonly length: number }[];
}

/** Bytes in memory. Reuses its view, as `ByteSource` allows, and fails when reads overlap in time. */
export function memorySource(bytes: Uint8Array): CountingSource {
  const reads: { offset: number; length: number }[] = [];
  let buffer = new Uint8Array(0);
  let isBusy = false;
  return {
    sizeBytes: bytes.length,
    reads,
    async read(offset, length) {
      if (isBusy) throw new Error('two reads at once');
      isBusy = true;
      reads.push({ offset, length });
      await Promise.resolve();
      const part = bytes.subarray(offset, offset + length);
      if (buffer.length < part.length) buffer = new Uint8Array(part.length);
      buffer.set(part);
      isBusy = false;
      return buffer.subarray(0, part.length);
    },
  };
}

async function collect(blocks: AsyncIterable<Float32Array>): Promise<Float32Array> {
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

/** 16 kHz samples of a range. */
export const readRange = (
  bytes: Uint8Array,
  index: AudioIndex,
  ports: AudioPorts,
  startSample: number,
  endSample: number,
): Promise<Float32Array> => collect(readSamples(memorySource(bytes), index, ports, { startSample, endSample }));

/** Mono at the source's own rate, from `startSample` to the end. */
export const readSourceRate = (
  bytes: Uint8Array,
  index: AudioIndex,
  ports: AudioPorts,
  startSample = 0,
): Promise<Float32Array> =>
  collect(containerOf(index).readMono(new BlockReader(memorySource(bytes)), index, ports.decoder, startSample));

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

/** Whether a command of the system is there; where not, the reason is printed once. */
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

/** Runs ffmpeg from bytes to bytes, over files: into a pipe it cannot write lengths and tags. */
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
