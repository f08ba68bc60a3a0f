import type { EmbeddingsSection, FramesSection, PartCounts, PartReader } from './part.ts';

/** Stored parts of a recording, in order. What is read is the caller's, who may detach its buffers. */
export interface Parts {
  readonly count: number;
  countsOf(index: number): PartCounts;
  readEmbeddings(index: number): Promise<EmbeddingsSection>;
  readFrames(index: number): Promise<FramesSection>;
}

/** The parts of a recording, opened, as one. */
export function partsOf(readers: readonly PartReader[]): Parts {
  return {
    count: readers.length,
    countsOf: (index) => readers[index]!.counts,
    readEmbeddings: (index) => readers[index]!.readEmbeddings(),
    readFrames: (index) => readers[index]!.readFrames(),
  };
}

/** How much all parts hold together. */
export function totalCounts(parts: Parts): PartCounts {
  let speakers = 0;
  let subsegments = 0;
  for (let index = 0; index < parts.count; index++) {
    const counts = parts.countsOf(index);
    speakers += counts.speakers;
    subsegments += counts.subsegments;
  }
  return { speakers, subsegments };
}
