import { type SettingName, settingsOf } from '../../src/diarization/parameters.ts';
import { encodePart, openPart, type PartReader, type Parts, partsOf } from '../../src/diarization/part.ts';
import { type AnalysisPorts, analyseShard } from '../../src/diarization/shard.ts';
import { blocksOf, fakePorts } from './fake-models.ts';

/** Analyses a recording in shards of the given length and stores the parts in memory, as jobs do in R2. */
export async function shardedPartsOf(
  samples: Float32Array,
  name: SettingName,
  shardSeconds = 300,
  ports: AnalysisPorts = fakePorts(),
): Promise<Parts> {
  const readers: PartReader[] = [];
  const shardSamples = shardSeconds * 16000;
  for (let startSample = 0; startSample < samples.length; startSample += shardSamples) {
    const endSample = Math.min(samples.length, startSample + shardSamples);
    const blocks = blocksOf(samples, startSample, Math.min(samples.length, endSample + 160000));
    const shard = { startSample, endSample, totalSamples: samples.length };
    const bytes = encodePart(await analyseShard(blocks, shard, ports, settingsOf(name), async () => undefined));
    readers.push(await openPart(async (offset, length) => bytes.subarray(offset, offset + length)));
  }
  return partsOf(readers);
}
