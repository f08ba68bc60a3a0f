import { assignOptimally } from '../diarization/assignment.ts';
import { assignSpeakers, type ClusteringParameters, findSpeakers } from '../diarization/clustering/strategy.ts';
import type { SpeakerVoice } from '../diarization/index.ts';
import type { LocalSpeakers } from '../diarization/local-speakers.ts';
import { settingsOf, withTuning } from '../diarization/parameters.ts';
import { dot, normalise } from '../diarization/vectors.ts';
import { LIVE } from './parameters.ts';
import type { Piece } from './pieces.ts';
import type { LiveEngine } from './types.ts';

/** A piece that the speakers are found from, or several of one speaker in one. */
export interface Item {
  readonly embedding: Float32Array;
  readonly seconds: number;
  readonly look: number;
  /** Index of a speaker. */
  label: number;
}

export interface SpeakersState {
  readonly items: readonly Item[];
  readonly labels: number;
  readonly centroids: readonly (Float32Array | undefined)[];
  readonly young: readonly boolean[];
  readonly shift: Float32Array;
  readonly reclusteredAt: number;
}

/**
 * The speakers of a stream so far. Between looks a speaker is the direction of its pieces' mean; now and then all pieces are
 * clustered anew as a recording's would be, and the clusters found take over the labels that most of their speech had. So a label that
 * was given twice to one person falls out of use, and one that two people shared stays with one of them; what was told is never changed.
 */
export class Speakers {
  #items: Item[] = [];
  #labels = 0;
  /** By label; undefined for one that fell out of use. */
  #centroids: (Float32Array | undefined)[] = [];
  /** By label: not yet confirmed by a clustering. */
  #young: boolean[] = [];
  #shift: Float32Array;
  #reclusteredAt = 0;
  readonly #parameters: ClusteringParameters;

  constructor(
    private readonly engine: Pick<LiveEngine, 'embedding' | 'plda'>,
    private readonly maxSpeakers: number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#shift = new Float32Array(engine.embedding.info.dimension);
    const { clustering } = withTuning(settingsOf('precision-2'), engine.embedding.info.tuned);
    // Pieces are short by nature; all of them are long enough to take part.
    this.#parameters = { ...clustering, minCleanSeconds: 0, minCleanSecondsWanted: 0 };
  }

  get labels(): number {
    return this.#labels;
  }

  /** Labels in use. */
  inUse(): number[] {
    return Array.from({ length: this.#labels }, (_, label) => label).filter((label) => this.#centroids[label]);
  }

  get isFull(): boolean {
    return this.#labels >= this.maxSpeakers;
  }

  /** Cosine similarity of pieces of one voice to a speaker in use. */
  similarity(pieces: readonly Piece[], label: number): number {
    const centroid = this.#centroids[label];
    return centroid === undefined ? -1 : dot(this.#mean(pieces), 0, centroid, 0, centroid.length);
  }

  /** Notes somebody who was not known before. */
  add(): number {
    this.#centroids.push(undefined);
    this.#young.push(true);
    return this.#labels++;
  }

  /** Takes pieces of a speaker into account. */
  learn(label: number, pieces: readonly Piece[]): void {
    for (const { embedding, newSeconds, look } of pieces) {
      this.#items.push({ embedding, seconds: newSeconds, look, label });
    }
    if (this.#young[label]) this.#centroids[label] = this.#mean(this.#items.filter((item) => item.label === label));
  }

  /** Finds the speakers anew, where it is time. @param nowSeconds of the stream */
  async reconsider(nowSeconds: number): Promise<void> {
    const next = LIVE.reclusterSeconds.find((seconds) => seconds > this.#reclusteredAt);
    const due = next ?? this.#reclusteredAt + LIVE.reclusterEverySeconds;
    if (nowSeconds < due || this.#items.length < 2) return;
    this.#reclusteredAt = nowSeconds;
    this.#thin();
    const items = asLocalSpeakers(this.#items, this.#shift.length);
    const model = await findSpeakers(
      items,
      this.#parameters,
      { min: 1, max: this.maxSpeakers },
      { step: 1, window: 1 },
      { pause: this.pause, plda: this.engine.plda },
    );
    const { clusterOf } = assignSpeakers(model, items);
    const labelOf = this.#keepLabels(clusterOf, model.clusters);
    this.#shift = model.shift;
    this.#centroids = this.#centroids.map(() => undefined);
    this.#young = this.#young.map(() => false);
    labelOf.forEach((label, cluster) => {
      if (label >= 0)
        this.#centroids[label] = model.centroids.slice(cluster * model.dimension, (cluster + 1) * model.dimension);
    });
    this.#items.forEach((item, row) => {
      const label = labelOf[clusterOf[row]!]!;
      if (label >= 0) item.label = label;
    });
  }

  /** How a speaker sounds, for comparing with known voices. */
  voiceOf(label: number): SpeakerVoice {
    const own = this.#items.filter((item) => item.label === label);
    const embedding = new Float32Array(own.length === 0 ? 0 : this.#shift.length);
    for (const item of own)
      for (let d = 0; d < embedding.length; d++) embedding[d]! += item.seconds * item.embedding[d]!;
    normalise(embedding, 0, embedding.length);
    const secondsAlone = own.reduce((sum, { seconds }) => sum + seconds, 0);
    return { embeddingId: this.engine.embedding.info.id, embedding, secondsAlone };
  }

  save(): SpeakersState {
    return {
      items: this.#items,
      labels: this.#labels,
      centroids: this.#centroids,
      young: this.#young,
      shift: this.#shift,
      reclusteredAt: this.#reclusteredAt,
    };
  }

  restore(state: SpeakersState): void {
    this.#items = state.items.map((item) => ({ ...item }));
    this.#labels = state.labels;
    this.#centroids = [...state.centroids];
    this.#young = [...state.young];
    this.#shift = state.shift;
    this.#reclusteredAt = state.reclusteredAt;
  }

  #mean(
    pieces: readonly { readonly embedding: Float32Array; readonly seconds?: number; readonly newSeconds?: number }[],
  ) {
    const sum = new Float32Array(this.#shift.length);
    for (const piece of pieces) {
      const weight = piece.seconds ?? piece.newSeconds ?? 1;
      for (let d = 0; d < sum.length; d++) sum[d]! += weight * (piece.embedding[d]! - this.#shift[d]!);
    }
    normalise(sum, 0, sum.length);
    return sum;
  }

  /** Joins neighbours of one speaker, the oldest first, until the items are few enough again. */
  #thin(): void {
    while (this.#items.length > LIVE.maxItems) {
      const kept: Item[] = [];
      let surplus = this.#items.length - LIVE.maxItems;
      for (let at = 0; at < this.#items.length; at++) {
        const [item, next] = [this.#items[at]!, this.#items[at + 1]];
        if (surplus > 0 && next?.label === item.label) {
          kept.push(joined(item, next));
          at++;
          surplus--;
        } else {
          kept.push(item);
        }
      }
      // Speakers who alternate piece by piece leave nothing to join: then the oldest goes.
      this.#items = kept.length < this.#items.length ? kept : this.#items.slice(1);
    }
  }

  /** The label of each cluster: that which most of its speech had, each label once; −1 where there are no more labels to give. */
  #keepLabels(clusterOf: Int32Array, clusters: number): number[] {
    const shared = new Float64Array(clusters * this.#labels);
    this.#items.forEach(({ label, seconds }, row) => {
      shared[clusterOf[row]! * this.#labels + label]! += seconds;
    });
    const chosen = assignOptimally(shared, clusters, this.#labels);
    return Array.from({ length: clusters }, (_, cluster) => {
      const label = chosen[cluster]!;
      if (label >= 0 && shared[cluster * this.#labels + label]! > 0) return label;
      return this.isFull ? -1 : this.add();
    });
  }
}

function joined(a: Item, b: Item): Item {
  const seconds = a.seconds + b.seconds;
  const embedding = a.embedding.map((value, d) => (a.seconds * value + b.seconds * b.embedding[d]!) / seconds);
  normalise(embedding, 0, embedding.length);
  return { embedding, seconds, look: a.look, label: a.label };
}

function asLocalSpeakers(items: readonly Item[], dimension: number): LocalSpeakers {
  const embeddings = new Float32Array(items.length * dimension);
  items.forEach(({ embedding }, row) => {
    embeddings.set(embedding, row * dimension);
  });
  const seconds = Float32Array.from(items, (item) => item.seconds);
  return {
    count: items.length,
    dimension,
    embeddings,
    // Pieces of one look are of different people.
    windows: Int32Array.from(items, ({ look }) => look),
    locals: new Uint8Array(items.length),
    cleanSeconds: seconds,
    activeSeconds: seconds,
  };
}
