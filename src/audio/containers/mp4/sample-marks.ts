/**
 * A packet that a walk over the tables may begin anew with: all that the walker knows when it comes to it. Without these every jump
 * reads the table of chunks from its start, and adds up the sizes of a chunk from its first packet. Plain JSON.
 */
export type SampleMark = readonly [packet: number, run: number, chunk: number, firstOfChunk: number, offset: number];

const FIRST_MARK: SampleMark = [0, 0, 0, 0, 0];

/** Packets and entries of the table of chunks between two marks: a few milliseconds. */
const MARK_EVERY = 1 << 15;

/** Collects the marks of one walk from the first packet on. */
export class SampleMarks {
  readonly marks: SampleMark[] = [];
  /** Number behind the last packet that is in the file. */
  end = 0;
  /** Whether packets of another description were left out. */
  hasOthers = false;
  #packets = 0;
  #markedAt = 0;

  /** Every packet, in order. */
  pass(...mark: SampleMark): void {
    const work = this.#packets++ + mark[1];
    if (work - this.#markedAt < MARK_EVERY) return;
    this.#markedAt = work;
    this.marks.push(mark);
  }
}

/** The last mark at or before a packet. */
export const markBefore = (marks: readonly SampleMark[], packet: number): SampleMark =>
  marks.findLast((mark) => mark[0] <= packet) ?? FIRST_MARK;
