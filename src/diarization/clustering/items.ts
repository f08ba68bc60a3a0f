import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../vectors.ts';

/** How long windows are and how far apart, in seconds. */
export interface WindowSeconds {
  readonly step: number;
  readonly window: number;
}

/** Keeps an item without any speech alone from weighing nothing. */
export const LEAST_WEIGHT = 0.01;

/** [count] how much each local speaker counts in means: by its speech alone. */
export function embeddingWeights({ cleanSeconds }: LocalSpeakers): Float64Array {
  return Float64Array.from(cleanSeconds, (seconds) => seconds + LEAST_WEIGHT);
}

/**
 * [count] seconds of speech alone that each local speaker adds to the recording, speech that several windows hear shared out
 * among them. At the edges of a recording, and so in all of a short one, fewer windows hear the same.
 */
export function distinctSeconds(speakers: LocalSpeakers, { step, window }: WindowSeconds): Float64Array {
  const cells = Math.max(1, Math.round(window / step));
  const last = speakers.windows.reduce((largest, index) => Math.max(largest, index), 0);
  return Float64Array.from(speakers.cleanSeconds, (seconds, row) => {
    const first = speakers.windows[row];
    if (first < 0) return seconds / cells;
    let share = 0;
    for (let cell = first; cell < first + cells; cell++) {
      const coverage = Math.min(cell, last) - Math.max(0, cell - cells + 1) + 1;
      share += 1 / Math.max(1, coverage);
    }
    return (seconds * share) / cells;
  });
}

/**
 * What to take from every embedding: a share of the recording's mean, which holds the room and the channel that all speakers
 * have in common. Only a share, because it also holds the voice of whoever speaks most.
 * @returns [dimension]
 */
export function meanShift(speakers: LocalSpeakers, weights: Float64Array, share: number): Float32Array {
  const { count, dimension, embeddings } = speakers;
  const sums = new Float64Array(dimension);
  let total = 0;
  for (let row = 0; row < count; row++) {
    total += weights[row];
    for (let d = 0; d < dimension; d++) sums[d] += weights[row] * embeddings[row * dimension + d];
  }
  return Float32Array.from(sums, (sum) => (total > 0 ? (share * sum) / total : 0));
}

/** The local speakers with `shift` taken from their embeddings, again of unit length. */
export function shifted(speakers: LocalSpeakers, shift: Float32Array): LocalSpeakers {
  const { count, dimension } = speakers;
  const embeddings = new Float32Array(count * dimension);
  for (let row = 0; row < count; row++) {
    const at = row * dimension;
    for (let d = 0; d < dimension; d++) embeddings[at + d] = speakers.embeddings[at + d] - shift[d];
    normalise(embeddings, at, dimension);
  }
  return { ...speakers, embeddings };
}
