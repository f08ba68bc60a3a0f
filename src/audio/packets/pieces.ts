import { findSeekPoint, type SeekTable } from '../seek-table.ts';

/** A stretch of a recording: decoded samples from a position on, or silence. Plain JSON. */
export interface Piece {
  /** Where in the decoded samples it begins; absent for silence. */
  readonly position?: number;
  readonly samples: number;
}

/** Decoded and thrown away behind each place where a decoder is opened anew. Opus asks for 80 ms (RFC 7845 §4.6); HE-AAC repeats its header about twice a second. */
const PRE_ROLL_SECONDS = 1;

/** What is decoded and thrown away, in samples of the decoder. */
export const preRollSamples = (rateHz: number): number => Math.ceil(PRE_ROLL_SECONDS * rateHz);

/** The decoded samples `[from, to)`, silence in front of them: what most recordings consist of. */
export const onePiece = (from: number, to: number, leadSamples = 0): readonly Piece[] =>
  joined([{ samples: leadSamples }, { position: from, samples: to - from }]);

/** The same without empty pieces, and with those in one that follow one another. */
export function joined(pieces: readonly Piece[]): readonly Piece[] {
  const out: Piece[] = [];
  for (const piece of pieces) {
    if (!(piece.samples > 0)) continue;
    const before = out.at(-1);
    const isNext =
      before &&
      (before.position === undefined
        ? piece.position === undefined
        : piece.position === before.position + before.samples);
    if (isNext) out[out.length - 1] = { ...before, samples: before.samples + piece.samples };
    else out.push(piece);
  }
  return out;
}

/** How long the pieces are together. */
export const samplesOf = (pieces: readonly Piece[]): number => pieces.reduce((sum, { samples }) => sum + samples, 0);

/**
 * Whether a reader that stands at `from` should decode on to get to `to`, and not begin anew: always when that costs less.
 * It changes no sample.
 */
export const isOnTheWay = (seek: SeekTable, rateHz: number, from: number, to: number): boolean =>
  from <= to && to - from <= unheardSamples(seek, rateHz, to);

/** Samples that a decoder opened for `position` gives before it gets there. */
const unheardSamples = (seek: SeekTable, rateHz: number, position: number): number =>
  position - findSeekPoint(seek, position - preRollSamples(rateHz)).sample;

/** Opening a decoder and finding its first packet counts as so much decoding. */
const OPENING_SECONDS = 5;

/** What reading the pieces from first to last costs beside their own length: samples that are decoded and not heard. */
export function unheardOf(pieces: readonly Piece[], seek: SeekTable, rateHz: number): number {
  let unheard = 0;
  let at: number | undefined;
  for (const { position, samples } of pieces) {
    if (position === undefined) continue;
    if (at !== undefined && isOnTheWay(seek, rateHz, at, position)) unheard += position - at;
    else unheard += Math.max(unheardSamples(seek, rateHz, position), OPENING_SECONDS * rateHz);
    at = position + samples;
  }
  return unheard;
}
