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
  /** Clean speech that it was taken from. */
  readonly seconds: number;
}

/** An item of the clustering: a voice in one window, or several voices of one speaker joined. */
export interface Item extends Voice {
  /** Number among the windows whose voices are items; −1 − n for joined items. */
  readonly window: number;
  label: number;
}

/**
 * A speaker keeps this number of items as long as others have more to join. Otherwise the items of a speaker who is
 * silent for long would soon be joined into one.
 */
const MIN_KEPT_ITEMS = 10;

/**
 * Joins adjacent items of one speaker, the oldest first, until at most `maxItems` remain. If speakers alternate there
 * are none: then the two oldest items of the speaker with the most items are joined. A speaker keeps at least one item,
 * unless all have only one.
 */
export function thinned(all: readonly Item[], maxItems: number): Item[] {
  let items = [...all];
  while (items.length > Math.max(1, maxItems)) {
    const kept = withNeighboursJoined(items, items.length - maxItems);
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
    if (left > 0 && next?.label === item.label && count > MIN_KEPT_ITEMS) {
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
 * Joins the two oldest items of the label with the most items, of equal ones the lowest label. If every label has one
 * item, drops the oldest.
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

/** Joins two items. Seconds are added, although the windows of items overlap. */
function joined(a: Item, b: Item): Item {
  const seconds = a.seconds + b.seconds;
  const embedding = a.embedding.map((value, d) => (a.seconds * value + b.seconds * b.embedding[d]) / seconds);
  normalise(embedding, 0, embedding.length);
  // A separate window, as for representatives: the joined item may share a cluster with items of its old window.
  return { embedding, seconds, window: a.window < 0 ? a.window : -1 - a.window, label: a.label };
}

/** Items in the form of the clustering of recordings. */
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

/** As stored in a snapshot: `look` is an item's window, `young` is `#unconfirmed`, `heard` is `#voiceSums`. */
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
 * The speakers of a stream so far. The centroid of a new speaker is the mean of its voices. At intervals all voices are
 * clustered as for a recording, and each cluster gets the label that most of its speech had. If one person had two
 * labels, one becomes unused; if two people shared a label, one of them keeps it. Sent events do not change. When the
 * maximum number of labels is reached, a new speaker gets an unused label.
 */
export class Speakers {
  #items: Item[] = [];
  #labels = 0;
  /** By label; undefined for an unused one. */
  #centroids: (Float32Array | undefined)[] = [];
  /** By label: sum of the voices so far; undefined after a clustering. */
  #unconfirmed: (Float32Array | undefined)[] = [];
  /** By label: sum of all voices that were assigned to it. */
  #voiceSums: Float32Array[] = [];
  /** By label: clean speech in the longest of these voices. A sum would count overlapping windows several times. */
  #longestSeconds: number[] = [];
  #shift: Float32Array;
  #reclusteredAt = 0;
  readonly #parameters: ClusteringParameters;

  constructor(
    private readonly engine: Pick<LiveEngine, 'embedding' | 'plda'>,
    private readonly maxSpeakers: number,
    /** Length of the windows that voices are taken from. */
    private readonly windowSamples: number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#shift = new Float32Array(engine.embedding.info.dimension);
    const { clustering } = withTuning(settingsOf('precision-2'), engine.embedding.info.tuned);
    this.#parameters = { ...clustering, initialThreshold: LIVE.initialThreshold };
  }

  get labels(): number {
    return this.#labels;
  }

  /** Labels in use. */
  inUse(): number[] {
    return Array.from({ length: this.#labels }, (_, label) => label).filter((label) => this.#centroids[label]);
  }

  /** Whether there is no label for another speaker. */
  get isFull(): boolean {
    return this.#labels >= this.maxSpeakers && this.#unused().length === 0;
  }

  /** Cosine similarity of a voice to the speaker of a label; −1 for an unused label. */
  similarity(embedding: Float32Array, label: number): number {
    const centroid = this.#centroids[label];
    return centroid === undefined ? -1 : dot(this.#shifted(embedding), 0, centroid, 0, centroid.length);
  }

  /**
   * Adds a speaker; must not be called when full. A voice similar to the last speaker of an unused label gets that
   * label again: with little speech a clustering may have wrongly joined the two.
   *
   * @param continuity [labels] share of the speech that was sent under each label
   * @returns the label
   */
  add(voice?: Voice, continuity?: Float64Array): number {
    const unused = this.#unused();
    const reused = voice && this.#mostSimilar(voice.embedding, unused, continuity);
    const label = reused ?? (this.#labels < this.maxSpeakers ? this.#labels++ : unused[0]);
    this.#centroids[label] = undefined;
    this.#unconfirmed[label] = new Float32Array(this.#shift.length);
    this.#voiceSums[label] ??= new Float32Array(this.#shift.length);
    if (reused === undefined) this.#clearVoices(label);
    return label;
  }

  /** Clears the voices of a label, for another person. */
  #clearVoices(label: number): void {
    this.#voiceSums[label].fill(0);
    this.#longestSeconds[label] = 0;
  }

  /** The label, if any, whose last speaker is similar to an embedding. */
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
   * Clusters all items if it is due or the stream has ended.
   *
   * @param nowSeconds time in the stream
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
   * Voice of a speaker in use, for comparison with known voices: from its items, or from all its voices without items.
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

  /** Labels that were in use before. */
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
   * then unused ones; −1 if there are none.
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
      if (other !== undefined) this.#clearVoices(other);
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
