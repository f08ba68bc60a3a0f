import {
  type AudioIndex,
  type AudioPorts,
  BlockReader,
  type ByteSource,
  outputSampleCount,
  readSamples,
} from '../../src/audio/index.ts';
import { containerOf } from '../../src/audio/registry.ts';

async function collect(blocks: AsyncIterable<Float32Array>, length: number): Promise<Float32Array> {
  const all = new Float32Array(length);
  let filled = 0;
  for await (const block of blocks) {
    all.set(block, filled);
    filled += block.length;
  }
  return all.subarray(0, filled);
}

/** Mono at the recording's own rate. */
export const decodeOurs = (source: ByteSource, index: AudioIndex, ports: AudioPorts): Promise<Float32Array> =>
  collect(containerOf(index).readMono(new BlockReader(source), index, ports.decoder, 0), index.totalSamples);

const read = (source: ByteSource, index: AudioIndex, ports: AudioPorts, startSample: number, endSample: number) =>
  collect(readSamples(source, index, ports, { startSample, endSample }), endSample - startSample);

export interface Reads {
  readonly whole: Float32Array;
  /** The same, read in shards that each start anew. */
  readonly sharded: Float32Array;
  /** Seconds of audio a second of time, decoding and resampling to 16 kHz in one piece. */
  readonly speed: number;
}

/** Shard length at 16 kHz; no multiple of anything that a codec works in. */
const SHARD_SAMPLES = 16_000 * 3 + 17;
/** The quickest of so many reads counts. */
const RUNS = 2;

/** Reads the recording at 16 kHz in one piece and in shards. */
export async function readBothWays(source: ByteSource, index: AudioIndex, ports: AudioPorts): Promise<Reads> {
  const count = outputSampleCount(index);
  let whole: Float32Array = new Float32Array(0);
  let bestMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now();
    whole = await read(source, index, ports, 0, count);
    bestMs = Math.min(bestMs, performance.now() - start);
  }
  const sharded = new Float32Array(count);
  for (let start = 0; start < count; start += SHARD_SAMPLES) {
    sharded.set(await read(source, index, ports, start, Math.min(count, start + SHARD_SAMPLES)), start);
  }
  return { whole, sharded, speed: index.durationSeconds / (bestMs / 1000) };
}
