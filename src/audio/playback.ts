import type { Piece } from './container.ts';

/**
 * The decoded samples from `from` on, up to `to` where it is given, silence in front of them: what most recordings
 * consist of.
 */
export const onePiece = (from: number, to?: number, leadSamples = 0): readonly Piece[] =>
  joined([{ samples: leadSamples }, { position: from, samples: to === undefined ? undefined : to - from }]);

/** The same without empty pieces, and with those in one that follow one another. */
export function joined(pieces: readonly Piece[]): readonly Piece[] {
  const out: Piece[] = [];
  for (const piece of pieces) {
    if (piece.samples !== undefined && !(piece.samples > 0)) continue;
    const before = out.at(-1);
    const isNext =
      before?.samples !== undefined &&
      (before.position === undefined
        ? piece.position === undefined
        : piece.position === before.position + before.samples);
    if (before?.samples !== undefined && isNext) {
      const samples = piece.samples === undefined ? undefined : before.samples + piece.samples;
      out[out.length - 1] = { ...before, ...piece, position: before.position, samples };
    } else out.push(piece);
  }
  return out;
}

/** Longest block that is played at once, samples. */
const BLOCK_SAMPLES = 1 << 16;

/**
 * Makes the recording out of decoded samples that come in order: leaves out what is not heard, puts silence where
 * nothing is played. Begins with the sample `startSample` of the recording.
 */
export class PiecePlayer {
  #index = 0;
  /** Samples of the present piece that were played, or skipped since the recording is read from after them. */
  #done: number;
  /** Where the decoded samples end. */
  #end = 0;

  constructor(
    private pieces: readonly Piece[],
    startSample: number,
  ) {
    this.#done = startSample;
    // How long the last piece of sound is shows at the end.
    for (const last = this.#lastSound; this.#index < pieces.length && this.#index !== last; this.#index++) {
      const { samples = 0 } = pieces[this.#index];
      if (this.#done < samples) break;
      this.#done -= samples;
    }
  }

  /** Samples of the recording in all, wherever reading began; known once the decoded samples have ended. */
  get totalSamples(): number {
    return this.pieces.reduce((sum, _, i) => sum + this.#lengthOf(i), 0);
  }

  get #lastSound(): number {
    return this.pieces.findLastIndex(({ position }) => position !== undefined);
  }

  /** Samples of a piece: the last one of sound ends with the decoded samples. */
  #lengthOf(index: number): number {
    const { position = 0, samples = Number.POSITIVE_INFINITY } = this.pieces[index];
    return index === this.#lastSound ? Math.min(samples, Math.max(0, this.#end - position)) : samples;
  }

  /**
   * Decoded samples from `position` on; each call continues where the one before ended. Views of them and silence come
   * out.
   */
  *play(samples: Float32Array, position: number): Generator<Float32Array> {
    const end = position + samples.length;
    for (let piece = this.pieces[this.#index]; piece; piece = this.pieces[this.#index]) {
      if (piece.position === undefined) yield* this.#silence((piece.samples ?? 0) - this.#done);
      else {
        const from = piece.position + this.#done;
        const until = Math.min(end, piece.samples === undefined ? end : piece.position + piece.samples);
        if (from >= end) return;
        if (until > from) {
          // What is wanted from in front of the samples that are there is lost.
          if (from < position) yield* this.#silence(Math.min(position, until) - from);
          const view = samples.subarray(Math.max(from, position) - position, until - position);
          this.#done += view.length;
          if (view.length > 0) yield view;
        }
        if (piece.samples === undefined || this.#done < piece.samples) return;
      }
      this.#index++;
      this.#done = Math.max(0, this.#done - (piece.samples ?? 0));
    }
  }

  /** Tells where the decoded samples end, before the last of them are played. */
  endAt(position: number): void {
    this.#end = position;
    this.pieces = this.pieces.map((piece) => {
      const { position: from, samples, slackSamples = 0 } = piece;
      const isRest = from !== undefined && samples !== undefined && from + samples >= position - slackSamples;
      return isRest && slackSamples > 0 ? { position: from } : piece;
    });
  }

  /**
   * What is still to come when the decoded samples have ended: silence, but for the last piece of sound, which ends
   * with them.
   */
  *finish(): Generator<Float32Array> {
    const last = this.#lastSound;
    for (; this.#index < this.pieces.length; this.#index++) {
      const length = this.#lengthOf(this.#index);
      // Reading may have begun after the end of the sound.
      const skipped = Math.max(0, this.#done - length);
      if (this.#index !== last) yield* this.#silence(length - this.#done);
      this.#done = skipped;
    }
  }

  *#silence(samples: number): Generator<Float32Array> {
    for (let left = samples; left > 0; ) {
      const length = Math.min(left, BLOCK_SAMPLES);
      left -= length;
      this.#done += length;
      yield new Float32Array(length);
    }
  }
}
