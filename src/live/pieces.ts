import type { Look } from './look.ts';
import { LIVE } from './parameters.ts';

/** A short stretch of one speaker's speech with its embedding. */
export interface Piece {
  /** Which look it was taken at. */
  readonly look: number;
  /** Frames of the stream in which the speaker talks alone, rising. */
  readonly frames: Int32Array;
  /** [dimension] of unit length */
  readonly embedding: Float32Array;
  /** Speech in it that no piece of the speaker before held, seconds. */
  readonly newSeconds: number;
}

/** A local speaker owns a piece of which it speaks at least so much. */
const OWNED_SHARE = 0.6;

/** Of each piece, which local speaker of the look said it; −1 for nobody. */
export function owners(pieces: readonly Piece[], look: Look): Int32Array {
  return Int32Array.from(pieces, ({ frames }) => {
    let best = -1;
    let most = OWNED_SHARE * frames.length;
    for (let local = 0; local < look.speakers; local++) {
      const own = frames.reduce((sum, frame) => sum + (look.isActive(local, frame) ? 1 : 0), 0);
      if (own >= most) [best, most] = [local, own];
    }
    return best;
  });
}

/**
 * The frames of the last seconds in which a local speaker talks alone, where they are enough for an embedding and not all old.
 *
 * @param until frame behind the last that an embedding can be taken of
 * @param before frame up to which the look before has seen
 */
export function pieceFrames(
  look: Look,
  local: number,
  until: number,
  before: number,
  secondsPerFrame: number,
): { readonly frames: Int32Array; readonly newSeconds: number } | undefined {
  const from = until - Math.round(LIVE.pieceSeconds / secondsPerFrame);
  const frames: number[] = [];
  for (let frame = Math.max(0, from); frame < until; frame++) if (look.isAlone(local, frame)) frames.push(frame);
  const fresh = frames.filter((frame) => frame >= before).length;
  if (fresh === 0) return undefined;
  const seconds = frames.length * secondsPerFrame;
  const fellSilent = look.sum(local, until - Math.round(0.1 / secondsPerFrame), look.endFrame) === 0;
  if (seconds < (fellSilent ? LIVE.minShortPieceSeconds : LIVE.minPieceSeconds)) return undefined;
  return { frames: Int32Array.from(frames), newSeconds: fresh * secondsPerFrame };
}

/** Distinct seconds of speech in pieces. */
export function secondsOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { newSeconds }) => sum + newSeconds, 0);
}
