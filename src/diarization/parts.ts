import type { EmbeddingsSection, ModelFacts, PartCounts, PartReader, ShardPart } from './part.ts';

/** Stored parts of a recording, in order. What is read is the caller's, who may detach its buffers. */
export interface Parts {
  readonly count: number;
  factsOf(index: number): ModelFacts;
  countsOf(index: number): PartCounts;
  readEmbeddings(index: number): Promise<EmbeddingsSection>;
  readPart(index: number): Promise<ShardPart>;
}

/** The parts of a recording, opened, as one. */
export function partsOf(readers: readonly PartReader[]): Parts {
  return {
    count: readers.length,
    factsOf: (index) => readers[index].facts,
    countsOf: (index) => readers[index].counts,
    readEmbeddings: (index) => readers[index].readEmbeddings(),
    readPart: (index) => readers[index].readPart(),
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

/** What `read` gives for each index below `count`, in order. One is read ahead: it is on its way while another is used. */
export async function* readAhead<T>(count: number, read: (index: number) => Promise<T>): AsyncGenerator<T> {
  let next = count > 0 ? read(0) : undefined;
  for (let index = 0; next !== undefined; index++) {
    const current = await next;
    next = index + 1 < count ? read(index + 1) : undefined;
    // Its fault is told when it is its turn; until then, or when nobody comes for it, it is nobody's.
    next?.catch(() => undefined);
    yield current;
  }
}
