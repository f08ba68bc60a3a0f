import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';
import { assignSpeakers, findSpeakers } from '../diarization/clustering/cluster.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import { KIND, type Representing } from '../diarization/local-speakers.ts';
import { assignOptimally, dot, normalise } from '../diarization/numerics.ts';
import { type ClusteringParameters, settingsOf, withTuning } from '../diarization/parameters.ts';
import { LIVE } from './live-parameters.ts';
import type { LiveEngine } from './live-session.ts';

/** Voice of a local speaker in a window. */
export interface Voice {
  /** [dimension] of unit length */
  readonly embedding: Float32Array;
  /** Speech alone that it was taken of. */
  readonly seconds: number;
}

/** An item of the clustering: a voice in one window, or several voices of one speaker joined. */
export interface Item extends Voice {
  /** Number among the windows whose voices are items; −1 − n for joined items. */
  readonly window: number;
  /** Index of a speaker. */
  label: number;
}

/**
 * Items of a speaker that are not joined while there are others to join: a speaker of long ago would soon be one item,
 * and forgotten.
 */
const FEW_ITEMS = 10;

/**
 * Joins neighbours of one speaker, the oldest first, until the items are few enough. Speakers who alternate leave no
 * neighbours: then the two oldest items of the speaker with most are joined. No speaker loses the last item.
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
 * Joins the two oldest items of the label with most items, the lowest such label; drops the oldest item of all where
 * every label has one.
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

/** Seconds add up, although the windows of items overlap. */
function joined(a: Item, b: Item): Item {
  const seconds = a.seconds + b.seconds;
  const embedding = a.embedding.map((value, d) => (a.seconds * value + b.seconds * b.embedding[d]) / seconds);
  normalise(embedding, 0, embedding.length);
  // A window of its own, as representatives have: it is no longer kept apart from items of its old window.
  return { embedding, seconds, window: a.window < 0 ? a.window : -1 - a.window, label: a.label };
}

/** Items as the clustering of a recording takes them. */
function asLocalSpeakers(items: readonly Item[], dimension: number): Representing {
  const seconds = Float32Array.from(items, (item) => item.seconds);
  return {
    count: items.length,
    dimension,
    embeddings: concatenated(
      Float32Array,
      items.map(({ embedding }) => embedding),
    ),
    windows: Int32Array.from(items, ({ window }) => window),
    kinds: Uint8Array.from(items, ({ window }) => (window < 0 ? KIND.representative : KIND.local)),
    locals: new Uint8Array(items.length),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}

/** As stored in a snapshot: `look` is an item's window, `young` are `#unconfirmed`, `heard` are `#voiceSums`. */
export interface SpeakersState {
  readonly items: readonly (Omit<Item, 'window'> & { readonly look: number })[];
  readonly labels: number;
  readonly centroids: readonly (Float32Array | undefined)[];
  readonly young: readonly (Float32Array | undefined)[];
  readonly heard: readonly Float32Array[];
  readonly heardSeconds: readonly number[];
  readonly shift: Float32Array;
  readonly reclusteredAt: number;
}

/**
 * The speakers of a stream so far. A new speaker is the mean of its voices so far. From time to time all voices are
 * clustered as those of a recording, and each cluster takes the label that most of its speech had. So of two labels of
 * one person one falls out of use, and a label that two people shared stays with one of them; events that were sent
 * stay as they are. When all labels are given, a new speaker gets one that is out of use.
 */
export class Speakers {
  #items: Item[] = [];
  #labels = 0;
  /** By label; undefined for one that fell out of use. */
  #centroids: (Float32Array | undefined)[] = [];
  /** By label: sum of the voices so far; undefined once a clustering has confirmed the label. */
  #unconfirmed: (Float32Array | undefined)[] = [];
  /** By label: sum of all voices that were assigned to it. */
  #voiceSums: Float32Array[] = [];
  /** By label: speech alone in the longest of these voices. A sum would count the overlap of windows many times. */
  #longestSeconds: number[] = [];
  #shift: Float32Array;
  #reclusteredAt = 0;
  readonly #parameters: ClusteringParameters;

  constructor(
    private readonly engine: Pick<LiveEngine, 'embedding' | 'plda'>,
    private readonly maxSpeakers: number,
    /** Length of the windows that voices are taken of. */
    private readonly windowSamples: number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#shift = new Float32Array(engine.embedding.info.dimension);
    const { clustering } = withTuning(settingsOf('precision-2'), engine.embedding.info.tuned);
    const { initialThreshold, speakerRegularisation } = LIVE;
    this.#parameters = { ...clustering, initialThreshold, speakerRegularisation };
  }

  get labels(): number {
    return this.#labels;
  }

  /** Labels in use. */
  inUse(): number[] {
    return Array.from({ length: this.#labels }, (_, label) => label).filter((label) => this.#centroids[label]);
  }

  /** Whether no label is left for another speaker. */
  get isFull(): boolean {
    return this.#labels >= this.maxSpeakers && this.#unused().length === 0;
  }

  /** Cosine similarity of a voice to a speaker in use; −1 for one that is not. */
  similarity(embedding: Float32Array, label: number): number {
    const centroid = this.#centroids[label];
    return centroid === undefined ? -1 : dot(this.#shifted(embedding), 0, centroid, 0, centroid.length);
  }

  /**
   * A label for a new speaker; not to be called when full. A voice similar to the last speaker of an unused label gets
   * that label again: with little speech a clustering may have joined the two wrongly.
   *
   * @param continuity [labels] share of the speech that was sent as each label's
   */
  add(voice?: Voice, continuity?: Float64Array): number {
    const unused = this.#unused();
    const again = voice && this.#mostSimilar(voice.embedding, unused, continuity);
    const label = again ?? (this.#labels < this.maxSpeakers ? this.#labels++ : unused[0]);
    this.#centroids[label] = undefined;
    this.#unconfirmed[label] = new Float32Array(this.#shift.length);
    this.#voiceSums[label] ??= new Float32Array(this.#shift.length);
    if (again === undefined) this.#forget(label);
    return label;
  }

  /** The label goes to another person. */
  #forget(label: number): void {
    this.#voiceSums[label].fill(0);
    this.#longestSeconds[label] = 0;
  }

  /** The label, if any, whose last speaker an embedding is similar to. */
  #mostSimilar(embedding: Float32Array, labels: readonly number[], continuity?: Float64Array): number | undefined {
    const own = this.#shifted(embedding);
    let best: number | undefined;
    let highest: number = LIVE.reuseSimilarity;
    for (const label of labels) {
      const last = this.#shifted(unit(this.#voiceSums[label]));
      const score = dot(own, 0, last, 0, own.length) + LIVE.continuityWeight * (continuity?.[label] ?? 0);
      if (score > highest) [best, highest] = [label, score];
    }
    return best;
  }

  /** Adds a voice that was assigned to a speaker. */
  addVoice(label: number, { embedding, seconds }: Voice): void {
    const sum = this.#unconfirmed[label];
    const all = this.#voiceSums[label];
    for (let d = 0; d < all.length; d++) all[d] += seconds * embedding[d];
    this.#longestSeconds[label] = Math.max(this.#longestSeconds[label], seconds);
    if (sum === undefined) return;
    for (let d = 0; d < sum.length; d++) sum[d] += seconds * embedding[d];
    this.#centroids[label] = this.#shifted(unit(sum));
  }

  /** Keeps a voice for the next clustering. @param window number among the windows whose voices are kept */
  addItem(label: number, voice: Voice, window: number): void {
    this.#items.push({ ...voice, window, label });
  }

  /**
   * Clusters all items again, where it is due or the stream has ended.
   *
   * @param nowSeconds of the stream
   * @returns whether it clustered
   */
  async recluster(nowSeconds: number, isLast = false): Promise<boolean> {
    const next = LIVE.reclusterSeconds.find((seconds) => seconds > this.#reclusteredAt);
    const due = next ?? this.#reclusteredAt + LIVE.reclusterEverySeconds;
    if ((nowSeconds < due && !isLast) || this.#items.length < 2) return false;
    this.#reclusteredAt = nowSeconds;
    this.#items = thinned(this.#items, LIVE.maxItems);
    const items = asLocalSpeakers(this.#items, this.#shift.length);
    const model = await findSpeakers(
      items,
      this.#parameters,
      { min: 1, max: this.maxSpeakers },
      { step: LIVE.itemEverySeconds, window: this.windowSamples / SAMPLE_RATE_HZ },
      { pause: this.pause, plda: this.engine.plda },
    );
    const { clusterOf } = assignSpeakers(model, items);
    const labelOf = this.#keepLabels(clusterOf, model.clusters);
    this.#shift = model.shift;
    this.#centroids = this.#centroids.map(() => undefined);
    this.#unconfirmed = this.#unconfirmed.map(() => undefined);
    labelOf.forEach((label, cluster) => {
      if (label >= 0)
        this.#centroids[label] = model.centroids.slice(cluster * model.dimension, (cluster + 1) * model.dimension);
    });
    this.#items.forEach((item, row) => {
      const label = labelOf[clusterOf[row]];
      if (label >= 0) item.label = label;
    });
    return true;
  }

  /**
   * Voice of a speaker in use, to be compared with known voices: of its items, or of all its voices while it has none.
   */
  voiceOf(label: number): SpeakerVoice {
    const embeddingId = this.engine.embedding.info.id;
    const own = this.#items.filter((item) => item.label === label);
    const longestSeconds = this.#longestSeconds[label];
    if (own.length === 0 && longestSeconds > 0) {
      return { embeddingId, embedding: unit(this.#voiceSums[label]), secondsAlone: longestSeconds };
    }
    const embedding = new Float32Array(own.length === 0 ? 0 : this.#shift.length);
    for (const item of own) for (let d = 0; d < embedding.length; d++) embedding[d] += item.seconds * item.embedding[d];
    normalise(embedding, 0, embedding.length);
    const secondsAlone = own.reduce((sum, { seconds }) => sum + seconds, 0);
    return { embeddingId, embedding, secondsAlone };
  }

  save(): SpeakersState {
    return {
      items: this.#items.map(({ embedding, seconds, window, label }) => ({ embedding, seconds, look: window, label })),
      labels: this.#labels,
      centroids: this.#centroids,
      young: this.#unconfirmed,
      heard: this.#voiceSums,
      heardSeconds: this.#longestSeconds,
      shift: this.#shift,
      reclusteredAt: this.#reclusteredAt,
    };
  }

  restore(state: SpeakersState): void {
    this.#items = state.items.map(({ look, ...item }) => ({ ...item, window: look }));
    this.#labels = state.labels;
    this.#centroids = [...state.centroids];
    this.#unconfirmed = [...state.young];
    this.#voiceSums = state.heard.map((sum) => sum.slice());
    this.#longestSeconds = [...state.heardSeconds];
    this.#shift = state.shift;
    this.#reclusteredAt = state.reclusteredAt;
  }

  /** Labels that were given and fell out of use. */
  #unused(): number[] {
    return Array.from({ length: this.#labels }, (_, label) => label).filter(
      (label) => this.#centroids[label] === undefined && this.#unconfirmed[label] === undefined,
    );
  }

  #shifted(embedding: Float32Array): Float32Array {
    const out = embedding.map((value, d) => value - this.#shift[d]);
    normalise(out, 0, out.length);
    return out;
  }

  /**
   * The label of each cluster: the one that most of its speech had, each label once. Other clusters get new labels,
   * then unused ones; −1 where none is left.
   */
  #keepLabels(clusterOf: Int32Array, clusters: number): number[] {
    const shared = new Float64Array(clusters * this.#labels);
    this.#items.forEach(({ label, seconds }, row) => {
      shared[clusterOf[row] * this.#labels + label] += seconds;
    });
    const given = this.#labels;
    const kept = Array.from(assignOptimally(shared, clusters, given), (label, cluster) =>
      label >= 0 && shared[cluster * given + label] > 0 ? label : -1,
    );
    const unused = Array.from({ length: given }, (_, label) => label).filter((label) => !kept.includes(label));
    return kept.map((label) => {
      if (label >= 0) return label;
      if (this.#labels < this.maxSpeakers) return this.add();
      const other = unused.shift();
      if (other !== undefined) this.#forget(other);
      return other ?? -1;
    });
  }
}

/** A copy of unit length. */
function unit(sum: Float32Array): Float32Array {
  const out = sum.slice();
  normalise(out, 0, out.length);
  return out;
}
