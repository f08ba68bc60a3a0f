import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';
import { assignSpeakers, findSpeakers } from '../diarization/clustering/cluster.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import { KIND, type Representing } from '../diarization/local-speakers.ts';
import { assignOptimally, dot, normalise } from '../diarization/numerics.ts';
import { type ClusteringParameters, settingsOf, withTuning } from '../diarization/parameters.ts';
import { LIVE } from './live-parameters.ts';
import type { LiveEngine } from './live-session.ts';

/** How a local speaker of a look sounds. */
export interface Voice {
  /** [dimension] of unit length */
  readonly embedding: Float32Array;
  /** Speech alone that it was taken of. */
  readonly seconds: number;
}

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
function asLocalSpeakers(items: readonly Item[], dimension: number): Representing {
  const seconds = Float32Array.from(items, (item) => item.seconds);
  return {
    count: items.length,
    dimension,
    embeddings: concatenated(
      Float32Array,
      items.map(({ embedding }) => embedding),
    ),
    windows: Int32Array.from(items, ({ look }) => look),
    kinds: Uint8Array.from(items, ({ look }) => (look < 0 ? KIND.representative : KIND.local)),
    locals: new Uint8Array(items.length),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}

export interface SpeakersState {
  readonly items: readonly Item[];
  readonly labels: number;
  readonly centroids: readonly (Float32Array | undefined)[];
  readonly young: readonly (Float32Array | undefined)[];
  readonly heard: readonly Float32Array[];
  readonly heardSeconds: readonly number[];
  readonly shift: Float32Array;
  readonly reclusteredAt: number;
}

/**
 * The speakers of a stream so far. Somebody new is known by the mean of its voice in the looks so far; now and then all
 * voices are clustered anew as a recording's would be, and the clusters found take over the labels that most of their
 * speech had. So a label that was given twice to one person falls out of use, and one that two people shared stays with
 * one of them; what was told is never changed. Who comes when all labels have been given gets one that is out of use:
 * better than somebody else's.
 */
export class Speakers {
  #items: Item[] = [];
  #labels = 0;
  /** By label; undefined for one that fell out of use. */
  #centroids: (Float32Array | undefined)[] = [];
  /** By label: sum of the voices so far; undefined once a clustering has confirmed the label. */
  #young: (Float32Array | undefined)[] = [];
  /** By label: sum of all voices that were told as its. */
  #heard: Float32Array[] = [];
  /**
   * By label: speech alone in the longest of these voices. Those of two looks share most of their speech: their sum
   * would count it over and over.
   */
  #heardSeconds: number[] = [];
  #shift: Float32Array;
  #reclusteredAt = 0;
  readonly #parameters: ClusteringParameters;

  constructor(
    private readonly engine: Pick<LiveEngine, 'embedding' | 'plda'>,
    private readonly maxSpeakers: number,
    /** Of a look. */
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

  /** Whether there is no label for one more. */
  get isFull(): boolean {
    return this.#labels >= this.maxSpeakers && this.#unused().length === 0;
  }

  /** Cosine similarity of a voice to a speaker in use; −1 for one that is not. */
  similarity(embedding: Float32Array, label: number): number {
    const centroid = this.#centroids[label];
    return centroid === undefined ? -1 : dot(this.#shifted(embedding), 0, centroid, 0, centroid.length);
  }

  /**
   * Notes somebody who is like nobody in use; not to be called when full. Who is like the last speaker of a label out
   * of use gets that one again: a clustering has taken them for somebody else for lack of speech.
   *
   * @param continuity [labels] share of the speech that was told as each label's
   */
  add(voice?: Voice, continuity?: Float64Array): number {
    const unused = this.#unused();
    const again = voice && this.#likest(voice.embedding, unused, continuity);
    const label = again ?? (this.#labels < this.maxSpeakers ? this.#labels++ : unused[0]);
    this.#centroids[label] = undefined;
    this.#young[label] = new Float32Array(this.#shift.length);
    this.#heard[label] ??= new Float32Array(this.#shift.length);
    if (again === undefined) this.#forget(label);
    return label;
  }

  /** The label is somebody else's from now on. */
  #forget(label: number): void {
    this.#heard[label].fill(0);
    this.#heardSeconds[label] = 0;
  }

  /** The label of some whose last speaker an embedding is like. */
  #likest(embedding: Float32Array, labels: readonly number[], continuity?: Float64Array): number | undefined {
    const own = this.#shifted(embedding);
    let best: number | undefined;
    let highest: number = LIVE.againSimilarity;
    for (const label of labels) {
      const heard = this.#shifted(unit(this.#heard[label]));
      const score = dot(own, 0, heard, 0, own.length) + LIVE.continuityWeight * (continuity?.[label] ?? 0);
      if (score > highest) [best, highest] = [label, score];
    }
    return best;
  }

  /** Takes a voice into account that was found to be a speaker's. */
  hear(label: number, { embedding, seconds }: Voice): void {
    const sum = this.#young[label];
    const heard = this.#heard[label];
    for (let d = 0; d < heard.length; d++) heard[d] += seconds * embedding[d];
    this.#heardSeconds[label] = Math.max(this.#heardSeconds[label], seconds);
    if (sum === undefined) return;
    for (let d = 0; d < sum.length; d++) sum[d] += seconds * embedding[d];
    this.#centroids[label] = this.#shifted(unit(sum));
  }

  /** Keeps a voice for finding the speakers anew. @param look number among the looks whose voices are kept */
  keep(label: number, voice: Voice, look: number): void {
    this.#items.push({ ...voice, look, label });
  }

  /**
   * Finds the speakers anew, where it is time or the last one for it.
   *
   * @param nowSeconds of the stream
   * @returns whether they were
   */
  async reconsider(nowSeconds: number, isLast = false): Promise<boolean> {
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
    this.#young = this.#young.map(() => undefined);
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
   * How a speaker in use sounds, for comparing with known voices. Of who has just been found nothing may be kept yet:
   * then what was heard tells.
   */
  voiceOf(label: number): SpeakerVoice {
    const embeddingId = this.engine.embedding.info.id;
    const own = this.#items.filter((item) => item.label === label);
    const heardSeconds = this.#heardSeconds[label];
    if (own.length === 0 && heardSeconds > 0) {
      return { embeddingId, embedding: unit(this.#heard[label]), secondsAlone: heardSeconds };
    }
    const embedding = new Float32Array(own.length === 0 ? 0 : this.#shift.length);
    for (const item of own) for (let d = 0; d < embedding.length; d++) embedding[d] += item.seconds * item.embedding[d];
    normalise(embedding, 0, embedding.length);
    const secondsAlone = own.reduce((sum, { seconds }) => sum + seconds, 0);
    return { embeddingId, embedding, secondsAlone };
  }

  save(): SpeakersState {
    return {
      items: this.#items,
      labels: this.#labels,
      centroids: this.#centroids,
      young: this.#young,
      heard: this.#heard,
      heardSeconds: this.#heardSeconds,
      shift: this.#shift,
      reclusteredAt: this.#reclusteredAt,
    };
  }

  restore(state: SpeakersState): void {
    this.#items = state.items.map((item) => ({ ...item }));
    this.#labels = state.labels;
    this.#centroids = [...state.centroids];
    this.#young = [...state.young];
    this.#heard = state.heard.map((sum) => sum.slice());
    this.#heardSeconds = [...state.heardSeconds];
    this.#shift = state.shift;
    this.#reclusteredAt = state.reclusteredAt;
  }

  /** Labels that were given, and are nobody's any more. */
  #unused(): number[] {
    return Array.from({ length: this.#labels }, (_, label) => label).filter(
      (label) => this.#centroids[label] === undefined && this.#young[label] === undefined,
    );
  }

  #shifted(embedding: Float32Array): Float32Array {
    const out = embedding.map((value, d) => value - this.#shift[d]);
    normalise(out, 0, out.length);
    return out;
  }

  /**
   * The label of each cluster: that which most of its speech had, each label once. The others get labels that were not
   * given yet, then those that fall out of use; −1 where there are none.
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
