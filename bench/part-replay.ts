import type { EmbeddingsSection, PartReader, Parts } from '../src/diarization/part.ts';
import { SUBSEGMENT_SHIFT_SAMPLES, windowCount } from '../src/diarization/windows.ts';

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
  const { facts } = readers[0];
  const totalSamples = shards * shardSamples;
  const perShard = shardSamples / facts.stepSamples;
  const windows = windowCount({ windowSamples: facts.windowSamples, stepSamples: facts.stepSamples, totalSamples });
  const rangeOf = (shard: number) => ({
    firstWindow: shard * perShard,
    windowCount: Math.min(perShard, windows - shard * perShard),
  });
  const moved = <Section extends EmbeddingsSection>(shard: number, section: Section): Section => {
    const { speakers, subsegments } = section;
    const range = rangeOf(shard);
    const windowsOn = range.firstWindow - (shard % whole) * perShard;
    const piecesOn = ((shard - (shard % whole)) * shardSamples) / SUBSEGMENT_SHIFT_SAMPLES;
    const end = range.firstWindow + range.windowCount;
    const count = speakers.windows.filter((window) => window + windowsOn < end).length;
    return {
      ...section,
      ...range,
      facts,
      speakers: { ...speakers, count, windows: speakers.windows.map((window) => window + windowsOn) },
      subsegments: { ...subsegments, indices: subsegments.indices.map((index) => index + piecesOn) },
    };
  };
  return {
    totalSamples,
    count: shards,
    factsOf: () => facts,
    // The last shard's windows may be fewer: a few speakers are counted too many.
    countsOf: (shard) => readers[shard % whole].counts,
    readEmbeddings: async (shard) => moved(shard, await readers[shard % whole].readEmbeddings()),
    async readPart(shard) {
      const part = moved(shard, await readers[shard % whole].readPart());
      const length = part.windowCount * facts.framesPerWindow * facts.classes;
      return { ...part, probabilities: part.probabilities.subarray(0, length) };
    },
  };
}
