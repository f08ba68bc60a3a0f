import { KIND, type Representing } from '../diarization/local-speakers.ts';
import { normalise } from '../diarization/numerics.ts';
import type { Voice } from './mapping.ts';

/** A voice in a look that the speakers are found from, or several of one speaker in one. */
export interface Item extends Voice {
  /** Looks of items are numbered; −1 − n for items that were joined. */
  readonly look: number;
  /** Index of a speaker. */
  label: number;
}

/**
 * Of a speaker who has no more items than this, none are joined while there are others to join: who was heard long ago
 * would soon be one item, and forgotten.
 */
const FEW_ITEMS = 10;

/**
 * Joins neighbours of one speaker, the oldest first, until the items are few enough. Speakers who alternate piece by
 * piece leave no neighbours: then the two oldest of who has most are joined. Nobody loses the last item.
 */
export function thinned(all: readonly Item[], most: number): Item[] {
  let items = [...all];
  while (items.length > Math.max(1, most)) {
    const kept = withNeighboursJoined(items, items.length - most);
    items = kept.length < items.length ? kept : withOldestJoined(items);
  }
  return items;
}

function withNeighboursJoined(items: readonly Item[], surplus: number): Item[] {
  const counts = countsOf(items);
  const kept: Item[] = [];
  let left = surplus;
  for (let at = 0; at < items.length; at++) {
    const [item, next] = [items[at], items[at + 1]];
    const count = counts.get(item.label)!;
    if (left > 0 && next?.label === item.label && count > FEW_ITEMS) {
      kept.push(joined(item, next));
      counts.set(item.label, count - 1);
      at++;
      left--;
    } else {
      kept.push(item);
    }
  }
  return kept;
}

/**
 * Joins the two oldest items of the label with most of them, the lowest of such; drops the oldest of all where nobody
 * has two.
 */
function withOldestJoined(items: readonly Item[]): Item[] {
  const [label, count] = [...countsOf(items)].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
  if (count < 2) return items.slice(1);
  const first = items.findIndex((item) => item.label === label);
  const second = items.findIndex((item, at) => at > first && item.label === label);
  return items.flatMap((item, at) => (at === second ? [] : [at === first ? joined(item, items[second]) : item]));
}

function countsOf(items: readonly Item[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { label } of items) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
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
export function asLocalSpeakers(items: readonly Item[], dimension: number): Representing {
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
    kinds: Uint8Array.from(items, ({ look }) => (look < 0 ? KIND.representative : KIND.local)),
    locals: new Uint8Array(items.length),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}
