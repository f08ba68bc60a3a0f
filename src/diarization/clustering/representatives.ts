import { release } from '../../audio/memory.ts';
import { joinLocalSpeakers, KIND, type LocalSpeakers, type Representing, select } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';
import { averageLinkage, cosineDistances, cutIntoClusters } from './linkage.ts';

/** Windows that are reduced together: five minutes with a window every second. */
const BLOCK_WINDOWS = 300;

/**
 * Collects the local speakers of a recording in bounded memory. Up to `maxItems` of them stay unchanged. Of more, each
 * block of 300 windows is reduced to representatives, in proportion to its share of all local speakers. A
 * representative is a cluster of the block's local speakers, with their mean embedding and summed seconds.
 * Blocks lie on the recording's window grid, so that the result does not depend on the sharding.
 */
export class Representatives {
  #blocks: (LocalSpeakers & { readonly kind: number })[] = [];
  #open: LocalSpeakers[] = [];
  #openBlock = 0;
  readonly #reducing: boolean;

  /** @param totalRows number of local speakers of the whole recording */
  constructor(
    private readonly dimension: number,
    private readonly totalRows: number,
    private readonly maxItems: number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#reducing = totalRows > maxItems;
  }

  /** Adds the next local speakers, in order of their windows. */
  async add(speakers: LocalSpeakers): Promise<void> {
    let start = 0;
    while (start < speakers.count) {
      const block = Math.floor(speakers.windows[start] / BLOCK_WINDOWS);
      let end = start;
      while (end < speakers.count && Math.floor(speakers.windows[end] / BLOCK_WINDOWS) === block) end++;
      if (block !== this.#openBlock) await this.#close(block);
      this.#open.push(select(speakers, range(start, end)));
      start = end;
    }
  }

  async finish(): Promise<Representing> {
    await this.#close(-1);
    const all = joinLocalSpeakers(this.#blocks, this.dimension);
    const kinds = Uint8Array.from(this.#blocks.flatMap(({ count, kind }) => new Array<number>(count).fill(kind)));
    for (const { embeddings } of this.#blocks) release(embeddings);
    this.#blocks = [];
    return { ...all, kinds };
  }

  async #close(next: number): Promise<void> {
    if (this.#open.length > 0) {
      const block = joinLocalSpeakers(this.#open, this.dimension);
      for (const { embeddings } of this.#open) release(embeddings);
      this.#blocks.push(this.#reducing ? await this.#reduce(block) : { ...block, kind: KIND.local });
    }
    this.#open = [];
    this.#openBlock = next;
  }

  async #reduce(block: LocalSpeakers): Promise<LocalSpeakers & { readonly kind: number }> {
    const quota = Math.max(2, Math.floor((this.maxItems * block.count) / this.totalRows));
    if (block.count <= quota) return { ...block, kind: KIND.local };
    const distances = await cosineDistances(block, block.embeddings, this.pause);
    const merges = await averageLinkage(distances, new Float64Array(block.count).fill(1), this.pause);
    const reduced = means(block, cutIntoClusters(merges, block.count, quota), quota);
    release(distances, block.embeddings);
    return { ...reduced, kind: KIND.representative };
  }
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, index) => start + index);
}

function means(speakers: LocalSpeakers, clusterOf: Int32Array, clusters: number): LocalSpeakers {
  const { dimension } = speakers;
  const embeddings = new Float32Array(clusters * dimension);
  const cleanSeconds = new Float32Array(clusters);
  const activeSeconds = new Float32Array(clusters);
  for (let row = 0; row < speakers.count; row++) {
    const cluster = clusterOf[row];
    const weight = speakers.cleanSeconds[row];
    cleanSeconds[cluster] += weight;
    activeSeconds[cluster] += speakers.activeSeconds[row];
    for (let d = 0; d < dimension; d++) {
      embeddings[cluster * dimension + d] += weight * speakers.embeddings[row * dimension + d];
    }
  }
  for (let cluster = 0; cluster < clusters; cluster++) normalise(embeddings, cluster * dimension, dimension);
  return {
    count: clusters,
    dimension,
    embeddings,
    windows: new Int32Array(clusters),
    locals: new Uint8Array(clusters),
    cleanSeconds,
    activeSeconds,
  };
}
