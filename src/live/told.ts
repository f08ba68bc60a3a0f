export interface ToldState {
  readonly from: number;
  readonly bits: Uint8Array;
}

/** Who was told to talk in the last frames: a bit a label, of which there are at most eight. */
export class Told {
  /** Frame of the first byte. */
  #from = 0;
  #bits: Uint8Array = new Uint8Array(0);

  /** First frame that is remembered. */
  get from(): number {
    return this.#from;
  }

  has(frame: number, label: number): boolean {
    return ((this.#bits[frame - this.#from] ?? 0) & (1 << label)) !== 0;
  }

  /** How many were told to talk at once. */
  count(frame: number): number {
    let count = 0;
    for (let bits = this.#bits[frame - this.#from] ?? 0; bits !== 0; bits &= bits - 1) count++;
    return count;
  }

  isAlone(frame: number, label: number): boolean {
    return this.has(frame, label) && this.count(frame) === 1;
  }

  add(frame: number, label: number): void {
    this.#bits[frame - this.#from] |= 1 << label;
  }

  /** Makes room for the frames up to `until`, and forgets all but the last `kept` of them. */
  remember(until: number, kept: number): void {
    const from = Math.max(0, until - kept);
    const next = new Uint8Array(until - from);
    const overlap = this.#bits.subarray(Math.max(0, from - this.#from));
    next.set(overlap.subarray(0, next.length), Math.max(0, this.#from - from));
    this.#bits = next;
    this.#from = from;
  }

  save(): ToldState {
    return { from: this.#from, bits: this.#bits };
  }

  restore({ from, bits }: ToldState): void {
    this.#from = from;
    this.#bits = bits;
  }
}
