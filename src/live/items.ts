import type { LocalSpeakers } from '../diarization/local-speakers.ts';
import { normalise } from '../diarization/vectors.ts';
import type { Voice } from './mapping.ts';

/** A voice in a look that the speakers are found from, or several of one speaker in one. */
export interface Item extends Voice {
  /** Looks of items are numbered; −1 − n for items that were joined. */
  readonly look: number;
  /** Index of a speaker. */
  label: number;
}

/** Joins neighbours of one speaker, the oldest first, until the items are few enough. */
export function thinned(all: readonly Item[], most: number): Item[] {
  let items = [...all];
  while (items.length > most) {
    const kept: Item[] = [];
    let surplus = items.length - most;
    for (let at = 0; at < items.length; at++) {
      const [item, next] = [items[at], items[at + 1]];
      if (surplus > 0 && next?.label === item.label) {
        kept.push(joined(item, next));
        at++;
        surplus--;
      } else {
        kept.push(item);
      }
    }
    // Speakers who alternate piece by piece leave nothing to join: then the oldest goes.
    items = kept.length < items.length ? kept : items.slice(1);
  }
  return items;
}

/** Seconds of items overlap as the looks do; what is joined counts what it adds up to. */
function joined(a: Item, b: Item): Item {
  const seconds = a.seconds + b.seconds;
  const embedding = a.embedding.map((value, d) => (a.seconds * value + b.seconds * b.embedding[d]) / seconds);
  normalise(embedding, 0, embedding.length);
  // Of its own window, as representatives are: it no longer excludes others.
  return { embedding, seconds, look: a.look < 0 ? a.look : -1 - a.look, label: a.label };
}

/** Items as the clustering of a recording takes them. */
export function asLocalSpeakers(items: readonly Item[], dimension: number): LocalSpeakers {
  const embeddings = new Float32Array(items.length * dimension);
  items.forEach(({ embedding }, row) => {
    embeddings.set(embedding, row * dimension);
  });
  const seconds = Float32Array.from(items, (item) => item.seconds);
  return {
    count: items.length,
    dimension,
    embeddings,
    windows: Int32Array.from(items, ({ look }) => look),
    locals: new Uint8Array(items.length),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}
