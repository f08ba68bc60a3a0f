import type { PartReader, Parts } from '../src/diarization/index.ts';
import { SUBSEGMENT_SHIFT_SAMPLES } from '../src/diarization/subsegments.ts';
import { windowCount } from '../src/diarization/windows.ts';

/**
 * The parts of a longer recording: those of a shorter one again and again, moved along the grid. All but the last of the shorter
 * one are used, which may be cut off.
 *
 * @param shards of the longer recording, all of `shardSamples`
 */
export async function replayedParts(
  readers: readonly PartReader[],
  shards: number,
  shardSamples: number,
): Promise<Parts & { readonly totalSamples: number }> {
  const whole = readers.length - 1;
  const { facts } = await readers[0]!.readEmbeddings();
  const totalSamples = shards * shardSamples;
  const perShard = shardSamples / facts.stepSamples;
  const windows = windowCount({ windowSamples: facts.windowSamples, stepSamples: facts.stepSamples, totalSamples });
  const rangeOf = (shard: number) => ({
    firstWindow: shard * perShard,
    windowCount: Math.min(perShard, windows - shard * perShard),
  });
  return {
    totalSamples,
    count: shards,
    // The last shard's windows may be fewer: a few speakers are counted too many.
    countsOf: (shard) => readers[shard % whole]!.counts,
    async readEmbeddings(shard) {
      const { speakers, subsegments, levels } = await readers[shard % whole]!.readEmbeddings();
      const range = rangeOf(shard);
      const moved = range.firstWindow - (shard % whole) * perShard;
      const movedPieces = ((shard - (shard % whole)) * shardSamples) / SUBSEGMENT_SHIFT_SAMPLES;
      const end = range.firstWindow + range.windowCount;
      const count = speakers.windows.filter((window) => window + moved < end).length;
      return {
        ...range,
        facts,
        speakers: { ...speakers, count, windows: speakers.windows.map((window) => window + moved) },
        subsegments: { ...subsegments, indices: subsegments.indices.map((index) => index + movedPieces) },
        levels,
      };
    },
    async readFrames(shard) {
      const { probabilities } = await readers[shard % whole]!.readFrames();
      const range = rangeOf(shard);
      const length = range.windowCount * facts.framesPerWindow * facts.classes;
      return { ...range, facts, probabilities: probabilities.subarray(0, length) };
    },
  };
}
