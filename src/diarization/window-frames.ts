import type { WindowFrames } from './overlap-add.ts';
import type { Powerset } from './powerset.ts';

/** Tracks that are averaged over the windows: speech, crosstalk, then one per cluster. */
export const SPEECH = 0;
export const CROSSTALK = 1;
export const FIRST_SPEAKER = 2;

/** The speakers' part of a frame's tracks, for arrays that come again and again. */
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

/** Speakers of one window: the cluster of each local speaker and how sure that is. */
export interface WindowSpeakers {
  /** [locals], −1 for local speakers without an embedding */
  readonly clusterOf: Int32Array;
  /** [locals, clusters] */
  readonly posterior: Float32Array;
}

/**
 * What windows contribute to the recording's frames.
 *
 * Activations are marginal probabilities and the number of speakers at once is its expectation, not the hard decision: where
 * windows disagree, the surer one counts for more (about one point of DER on simulated conversations against hard decisions).
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
