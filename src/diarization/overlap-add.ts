import { rint } from './numerics.ts';
import type { Powerset } from './segmenter.ts';

/** Contribution of one window to the frames. */
interface WindowFrames {
  /** [frames] number of speakers at once */
  readonly counts: ArrayLike<number>;
  /** [frames, locals] activation of each local speaker */
  readonly activations: ArrayLike<number>;
  readonly locals: number;
  /** [locals] cluster of each local speaker, −1 for none */
  readonly clusterOf: ArrayLike<number>;
  /** [frames, tracks] values to average over the windows */
  readonly tracks: ArrayLike<number>;
}

/** A frame that no further window covers. The object and its arrays are reused, every window's length of frames. */
export interface FinishedFrame {
  readonly frame: number;
  /** [clusters] sum of activations, or their average if they were adjusted */
  readonly activations: Float32Array;
  /** Active clusters by decreasing activation; of ties the lower number first. */
  readonly active: readonly number[];
  /** [tracks] averages */
  readonly tracks: Float32Array;
}

interface OverlapAddShape {
  readonly framesPerWindow: number;
  readonly clusters: number;
  readonly tracks: number;
  /** Frames of the recording; later ones are padding. */
  readonly totalFrames: number;
  /** [clusters] factor on the activations; all ones by default */
  readonly boost?: ArrayLike<number>;
  /**
   * Changes a frame in place before the decision: average activations [clusters], expected number of speakers at once,
   * average tracks [tracks].
   */
  readonly adjust?: (frame: number, activations: Float32Array, expected: number, tracks: Float32Array) => void;
}

/**
 * Overlap-add of windows into the recording's frames. The activations of each cluster are summed over the windows; of
 * local speakers of a window that share a cluster, the largest counts. The number of speakers at once is averaged over
 * the windows and rounded, halves to even. In each frame that number of clusters with the largest activations are
 * active (speaker counting and reconstruction of Bredin, "pyannote.audio 2.1 speaker diarization pipeline", 2023).
 * Memory holds one window of frames.
 */
export class OverlapAdd {
  readonly #activations: Float32Array;
  readonly #counts: Float32Array;
  readonly #tracks: Float32Array;
  /** By slot: number of windows over the frame. */
  readonly #windows: Uint8Array;
  /** By slot, views of the arrays above: new views for every frame of a day would be gigabytes of garbage. */
  readonly #finished: { -readonly [K in keyof FinishedFrame]: FinishedFrame[K] }[];
  readonly #chosen: Int32Array;
  /** By number of active clusters: arrays that shrink and grow would be allocated in every frame. */
  readonly #active: readonly number[][];
  readonly #isActive: Uint8Array;
  readonly #largest: Float32Array;
  #done = 0;

  constructor(
    private readonly shape: OverlapAddShape,
    private readonly emit: (frame: FinishedFrame) => void,
  ) {
    const { framesPerWindow, clusters, tracks } = shape;
    this.#activations = new Float32Array(framesPerWindow * clusters);
    this.#counts = new Float32Array(framesPerWindow);
    this.#tracks = new Float32Array(framesPerWindow * tracks);
    this.#windows = new Uint8Array(framesPerWindow);
    this.#finished = Array.from({ length: framesPerWindow }, (_, slot) => ({
      frame: slot,
      activations: this.#activations.subarray(slot * clusters, (slot + 1) * clusters),
      active: [],
      tracks: this.#tracks.subarray(slot * tracks, (slot + 1) * tracks),
    }));
    this.#chosen = new Int32Array(clusters);
    this.#active = Array.from({ length: clusters + 1 }, (_, count) => new Array<number>(count).fill(0));
    this.#isActive = new Uint8Array(clusters);
    this.#largest = new Float32Array(clusters);
  }

  /** Adds a window that starts at `firstFrame`; windows come in order. */
  push(firstFrame: number, window: WindowFrames): void {
    const { framesPerWindow, clusters, tracks, boost } = this.shape;
    this.#finishBefore(firstFrame);
    const largest = this.#largest;
    const present = [...new Set(Array.from(window.clusterOf).filter((cluster) => cluster >= 0))];
    for (let index = 0; index < framesPerWindow; index++) {
      const slot = (firstFrame + index) % framesPerWindow;
      this.#windows[slot]++;
      this.#counts[slot] += window.counts[index];
      for (let track = 0; track < tracks; track++) {
        this.#tracks[slot * tracks + track] += window.tracks[index * tracks + track];
      }
      for (const cluster of present) largest[cluster] = 0;
      for (let local = 0; local < window.locals; local++) {
        const cluster = window.clusterOf[local];
        if (cluster >= 0) {
          largest[cluster] = Math.max(largest[cluster], window.activations[index * window.locals + local]);
        }
      }
      for (const cluster of present) {
        const factor = boost === undefined ? 1 : boost[cluster];
        this.#activations[slot * clusters + cluster] += factor * largest[cluster];
      }
    }
  }

  /** Emits the remaining frames. */
  finish(): void {
    this.#finishBefore(this.shape.totalFrames);
  }

  #finishBefore(end: number): void {
    const { framesPerWindow, clusters, tracks, totalFrames } = this.shape;
    for (; this.#done < end; this.#done++) {
      const slot = this.#done % framesPerWindow;
      const finished = this.#finished[slot];
      const { activations, tracks: averages } = finished;
      const windows = this.#windows[slot];
      if (this.#done < totalFrames) {
        const count = windows > 0 ? Math.min(clusters, rint(this.#counts[slot] / windows)) : 0;
        if (windows > 0) {
          for (let track = 0; track < tracks; track++) averages[track] /= windows;
          if (this.shape.adjust !== undefined) {
            for (let cluster = 0; cluster < clusters; cluster++) activations[cluster] /= windows;
            this.shape.adjust(this.#done, activations, this.#counts[slot] / windows, averages);
          }
        }
        finished.active = this.#choose(activations, count);
        finished.frame = this.#done;
        this.emit(finished);
      }
      activations.fill(0);
      averages.fill(0);
      this.#counts[slot] = 0;
      this.#windows[slot] = 0;
    }
  }

  /** Clusters of the `count` largest activations above zero. Selecting one to three is faster than sorting. */
  #choose(activations: Float32Array, count: number): readonly number[] {
    const chosen = this.#chosen;
    let found = 0;
    while (found < count) {
      let best = -1;
      for (let cluster = 0; cluster < activations.length; cluster++) {
        if (this.#isActive[cluster] === 0 && activations[cluster] > (best < 0 ? 0 : activations[best])) best = cluster;
      }
      if (best < 0) break;
      this.#isActive[best] = 1;
      chosen[found++] = best;
    }
    const active = this.#active[found];
    for (let index = 0; index < found; index++) {
      active[index] = chosen[index];
      this.#isActive[chosen[index]] = 0;
    }
    return active;
  }
}

/** Tracks that are averaged over the windows: speech, crosstalk, then one per cluster. */
export const SPEECH = 0;
export const CROSSTALK = 1;
export const FIRST_SPEAKER = 2;

/** Views of the speakers' tracks in a frame, cached by array because the arrays are reused. */
export class SpeakerViews {
  readonly #views = new Map<Float32Array, Float32Array>();

  of(tracks: Float32Array): Float32Array {
    let view = this.#views.get(tracks);
    if (view === undefined) {
      view = tracks.subarray(FIRST_SPEAKER);
      this.#views.set(tracks, view);
    }
    return view;
  }
}

/** The clusters of a window's local speakers and their probabilities. */
interface WindowSpeakers {
  /** [locals], −1 for local speakers without an embedding */
  readonly clusterOf: Int32Array;
  /** [locals, clusters] */
  readonly posterior: Float32Array;
}

/**
 * Computes the contribution of a window to the recording's frames.
 *
 * Activations are marginal probabilities, and the number of speakers at once is its expectation, not a hard decision.
 * If windows disagree, the more certain one counts more: about one point of DER on simulated conversations.
 */
export class WindowReader {
  readonly #activations: Float32Array;
  readonly #counts: Float32Array;
  readonly #tracks: Float32Array;

  /** @param countBias added to the expected number of speakers */
  constructor(
    private readonly powerset: Powerset,
    private readonly framesPerWindow: number,
    private readonly clusters: number,
    private readonly countBias: number,
  ) {
    this.#activations = new Float32Array(framesPerWindow * powerset.speakers);
    this.#counts = new Float32Array(framesPerWindow);
    this.#tracks = new Float32Array(framesPerWindow * (FIRST_SPEAKER + clusters));
  }

  /**
   * @param probabilities [frames, classes], 255 for certainty
   * @returns arrays that the next call overwrites
   */
  read(probabilities: Uint8Array, { clusterOf, posterior }: WindowSpeakers): WindowFrames {
    const { classes, speakers: locals, cardinality, mapping } = this.powerset;
    const { framesPerWindow, clusters } = this;
    const [activations, counts, tracks] = [this.#activations, this.#counts, this.#tracks];
    const width = FIRST_SPEAKER + clusters;
    activations.fill(0);
    tracks.fill(0);
    for (let frame = 0; frame < framesPerWindow; frame++) {
      const at = frame * width;
      const local0 = frame * locals;
      let expected = 0;
      for (let index = 0; index < classes; index++) {
        const byte = probabilities[frame * classes + index];
        if (byte === 0) continue;
        const probability = byte / 255;
        expected += probability * cardinality[index];
        if (cardinality[index] >= 1) tracks[at + SPEECH] += probability;
        if (cardinality[index] >= 2) tracks[at + CROSSTALK] += probability;
        for (let local = 0; local < locals; local++) {
          if (mapping[index * locals + local] === 1) activations[local0 + local] += byte;
        }
      }
      counts[frame] = expected + this.countBias;
      for (let local = 0; local < locals; local++) {
        activations[local0 + local] /= 255;
        const probability = activations[local0 + local];
        if (clusterOf[local] < 0 || probability === 0) continue;
        for (let cluster = 0; cluster < clusters; cluster++) {
          tracks[at + FIRST_SPEAKER + cluster] += probability * posterior[local * clusters + cluster];
        }
      }
    }
    return { counts, activations, locals, clusterOf, tracks };
  }
}
