import {
  analyseShard,
  type DiarizationSettings,
  encodePart,
  openPart,
  type PartReader,
} from '../src/diarization/index.ts';
import type { Engine } from '../src/jobs/job-ports.ts';

const OVERRUN_SAMPLES = 160_000;
const BLOCK_SAMPLES = 16_000;

export interface AnalysedShard {
  readonly reader: PartReader;
  /** CPU of this process for the analysis of the shard, from decoded samples to the part. */
  readonly cpuMs: number;
}

/** Analyses a decoded recording in shards of the given length, as jobs do, and stores the parts in memory. */
export async function analyseInShards(
  samples: Float32Array,
  shardSamples: number,
  engine: Engine,
  settings: DiarizationSettings,
): Promise<AnalysedShard[]> {
  const shards: AnalysedShard[] = [];
  for (let startSample = 0; startSample < samples.length; startSample += shardSamples) {
    const endSample = Math.min(samples.length, startSample + shardSamples);
    const from = process.cpuUsage();
    const blocks = blocksOf(samples, startSample, Math.min(samples.length, endSample + OVERRUN_SAMPLES));
    const shard = { startSample, endSample, totalSamples: samples.length };
    const bytes = encodePart(await analyseShard(blocks, shard, engine, settings, async () => undefined));
    const { user, system } = process.cpuUsage(from);
    const reader = await openPart(async (offset, length) => bytes.slice(offset, offset + length));
    shards.push({ reader, cpuMs: (user + system) / 1000 });
  }
  return shards;
}

async function* blocksOf(samples: Float32Array, start: number, end: number): AsyncGenerator<Float32Array> {
  for (let at = start; at < end; at += BLOCK_SAMPLES) yield samples.subarray(at, Math.min(end, at + BLOCK_SAMPLES));
}
