import type { AudioResult, ByteSource } from '../../src/audio/audio-ports.ts';
import { BlockReader } from '../../src/audio/block-reader.ts';
import type { Part } from '../../src/audio/container.ts';
import { Decoding } from '../../src/audio/decode.ts';
import { type AudioPorts, type Checkpoint, openPart, Recording } from '../../src/audio/recording.ts';

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

/** The head of a recording. */
export const openOurs = (source: ByteSource, ports: AudioPorts): Promise<AudioResult<Part>> =>
  openPart(new BlockReader(source), ports.decoder);

/** Mono at the recording's own rate. */
export async function decodeOurs(source: ByteSource, ports: AudioPorts): Promise<Float32Array> {
  const reader = new BlockReader(source);
  const part = await openPart(reader, ports.decoder);
  if (!part.ok) throw new Error(part.error.message);
  return collect((await Decoding.open(reader, part.value)).blocks());
}

export interface Reads {
  readonly whole: Float32Array;
  /** The same, where another process continues near the end. */
  readonly resumed: Float32Array;
  /** Seconds of audio a second of time, decoding and resampling to 16 kHz in one piece. */
  readonly speed: number;
}

/** Where the second process resumes: after the first decoder restart. */
const RESUME_SHARE = 0.95;
/** The quickest of so many reads counts. */
const RUNS = 2;
const RATE_HZ = 16_000;

/** Reads the recording at 16 kHz in one piece, and in two. */
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
  return { whole, resumed, speed: whole.length / RATE_HZ / (bestMs / 1000) };
}

async function open(source: ByteSource, ports: AudioPorts, from?: Checkpoint): Promise<Recording> {
  const opened = await Recording.open(source, ports, from);
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}
