import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { LIVE } from './live-parameters.ts';
import { type Blocks, keptBlocks } from './stream-buffer.ts';
import type { Speakers } from './stream-speakers.ts';

/** A stretch that was told as one speaker's. Frames [from, until) of the stream. */
export interface Piece {
  /** Whose it is by now. */
  label: number;
  /** Whose it was told to be, corrections counted. Another's while the label has not been told: corrections may not number it, as starts do. */
  told: number;
  readonly from: number;
  readonly until: number;
  /** How it sounds, [dimension] of unit length in steps of 1/127; empty where nobody talks alone for long enough. */
  readonly embedding: Int8Array;
  /** Speech alone that it was taken of. */
  readonly seconds: number;
}

/** What was told as `label`'s in the frames [from, until) is `to`'s. */
interface Change {
  readonly label: number;
  readonly to: number;
  readonly from: number;
  readonly until: number;
}

export interface CorrectionsState {
  readonly pieces: readonly Piece[];
  readonly open: readonly { readonly label: number; readonly from: number }[];
}

const STEPS = 127;
const NONE = new Int8Array(0);

/**
 * What was told, in pieces of at most a few seconds, and whose each of them turns out to be when the speakers have been found anew. That brings together what
 * had been told as two people's, and takes apart what two people shared; starts and ends are the same with and without it.
 */
export class Corrections {
  #pieces: Piece[] = [];
  /** By label: from which frame on its open turn is in no piece yet. */
  readonly #open = new Map<number, number>();

  constructor(private readonly frameShiftSamples: number) {}

  /** A turn begins. */
  start(label: number, frame: number): void {
    this.#open.set(label, frame);
  }

  /** A turn ends; `isAlone` says of a frame whether it was told as this label's alone. */
  async end(label: number, frame: number, ear: Blocks, isAlone: (frame: number) => boolean): Promise<void> {
    const from = this.#open.get(label);
    this.#open.delete(label);
    if (from !== undefined && from < frame) await this.#add(label, from, frame, ear, isAlone);
  }

  /** Cuts open turns that are long enough, so that their sound is taken while it is there. */
  async cut(until: number, ear: Blocks, isAlone: (label: number, frame: number) => boolean): Promise<void> {
    const longest = (LIVE.pieceSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples;
    for (const [label, from] of this.#open) {
      if (until - from < longest) continue;
      this.#open.set(label, until);
      await this.#add(label, from, until, ear, (frame) => isAlone(label, frame));
    }
  }

  /**
   * Finds out whose the pieces are by now. All changes together, each of what was told and corrected before; by time.
   *
   * @param isTold whether a label may be named; what is another's is told with the first correction for which it may
   */
  revise(speakers: Speakers, isTold: (label: number) => boolean): Change[] {
    const targets = this.#pieces.map((piece) => closest(piece, speakers));
    const heirs = heirsOf(this.#pieces, targets);
    const changes = new Map<number, { label: number; to: number; from: number; until: number }[]>();
    const inUse = new Set(speakers.inUse());
    this.#pieces.forEach((piece, index) => {
      const { label, told } = piece;
      piece.label = targets[index] ?? (inUse.has(label) ? label : (heirs.get(label) ?? label));
      const to = isTold(piece.label) ? piece.label : told;
      const own = changes.get(told) ?? [];
      changes.set(told, own);
      const last = own.at(-1);
      // Nothing else of this label lies between two of its pieces.
      if (last?.to === to) {
        // Pieces come in the order of their ends, and those that were corrected to a label may overlap.
        last.from = Math.min(last.from, piece.from);
        last.until = Math.max(last.until, piece.until);
      } else own.push({ label: told, to, from: piece.from, until: piece.until });
      piece.told = to;
    });
    return [...changes.values()]
      .flat()
      .filter(({ label, to }) => label !== to)
      .sort((a, b) => a.from - b.from || a.label - b.label);
  }

  save(): CorrectionsState {
    return { pieces: this.#pieces, open: Array.from(this.#open, ([label, from]) => ({ label, from })) };
  }

  restore({ pieces, open }: CorrectionsState): void {
    this.#pieces = pieces.map((piece) => ({ ...piece }));
    this.#open.clear();
    for (const { label, from } of open) this.#open.set(label, from);
  }

  async #add(label: number, from: number, until: number, ear: Blocks, isAlone: (frame: number) => boolean) {
    const shift = this.frameShiftSamples;
    const kept = keptBlocks(ear, from * shift, until * shift, shift, (f) => f >= from && f < until && isAlone(f));
    const heard = kept && (await ear.embed(kept.blocks));
    const embedding = heard ? Int8Array.from(heard, (value) => Math.round(STEPS * value)) : NONE;
    this.#pieces.push({ label, told: label, from, until, embedding, seconds: kept?.seconds ?? 0 });
    if (this.#pieces.length > LIVE.maxPieces) this.#pieces.shift();
  }
}

/**
 * Whom a piece sounds like: another speaker than before only where that is clear. Undefined for one that says too little, and for one of a label
 * that fell out of use which is like nobody who is left: who has been silent for long falls out of use too, and was not somebody else for that.
 */
function closest({ label, embedding, seconds }: Piece, speakers: Speakers): number | undefined {
  if (embedding.length === 0) return undefined;
  const inUse = speakers.inUse();
  const voice = Float32Array.from(embedding, (value) => value / STEPS);
  let best: number | undefined;
  let most = Number.NEGATIVE_INFINITY;
  for (const other of inUse) {
    const doubt = other === label ? 0 : LIVE.correctionMargin / Math.min(1, seconds);
    const similarity = speakers.similarity(voice, other) - doubt;
    if (similarity > most) [best, most] = [other, similarity];
  }
  return most < LIVE.againSimilarity && !inUse.includes(label) ? undefined : best;
}

/** For each label the one that most of its speech went to, which may be itself. */
function heirsOf(pieces: readonly Piece[], targets: readonly (number | undefined)[]): ReadonlyMap<number, number> {
  const shares = new Map<number, Map<number, number>>();
  pieces.forEach(({ label, embedding, seconds }, index) => {
    if (embedding.length === 0) return;
    const to = targets[index] ?? label;
    const own = shares.get(label) ?? new Map<number, number>();
    shares.set(label, own.set(to, (own.get(to) ?? 0) + seconds));
  });
  return new Map(Array.from(shares, ([label, own]) => [label, [...own].sort((a, b) => b[1] - a[1])[0][0]]));
}
