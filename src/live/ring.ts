/** The last rows of a growing table: rows are numbered from the beginning of the stream, old ones are forgotten. */
export class Ring {
  /** [2 · capacity, width], of which `#count` rows from `#offset` on are there */
  #rows: Float32Array;
  #offset = 0;
  #first = 0;
  #count = 0;

  constructor(
    readonly width: number,
    readonly capacity: number,
  ) {
    this.#rows = new Float32Array(2 * capacity * width);
  }

  /** Number of the first row that is still there. */
  get start(): number {
    return this.#first;
  }

  /** Number of rows so far. */
  get end(): number {
    return this.#first + this.#count;
  }

  /** Adds rows. @param values [rows, width] */
  push(values: Float32Array): void {
    const rows = values.length / this.width;
    if (rows > this.capacity) {
      const skipped = rows - this.capacity;
      this.#first += this.#count + skipped;
      this.#count = this.capacity;
      this.#offset = 0;
      this.#rows.set(values.subarray(skipped * this.width));
      return;
    }
    const kept = Math.min(this.#count, this.capacity - rows);
    // Twice the capacity: old rows are moved to the front once every `capacity` rows, not at each call.
    if ((this.#offset + this.#count + rows) * this.width > this.#rows.length) {
      const from = (this.#offset + this.#count - kept) * this.width;
      this.#rows.copyWithin(0, from, from + kept * this.width);
      this.#first += this.#count - kept;
      this.#count = kept;
      this.#offset = 0;
    }
    this.#rows.set(values, (this.#offset + this.#count) * this.width);
    this.#count += rows;
    const surplus = this.#count - this.capacity;
    if (surplus > 0) {
      this.#offset += surplus;
      this.#first += surplus;
      this.#count = this.capacity;
    }
  }

  /** Rows [from, to) as a view that is valid until the next `push`. @throws when some are gone or not there yet */
  view(from: number, to: number): Float32Array {
    if (from < this.#first || to > this.end || from > to) {
      throw new RangeError(`rows ${from} to ${to} are not all in ${this.#first} to ${this.end}`);
    }
    const at = this.#offset + from - this.#first;
    return this.#rows.subarray(at * this.width, (at + to - from) * this.width);
  }

  /** What `restore` needs. */
  save(): { readonly start: number; readonly rows: Float32Array } {
    return { start: this.#first, rows: this.view(this.#first, this.end).slice() };
  }

  restore({ start, rows }: { readonly start: number; readonly rows: Float32Array }): void {
    this.#offset = 0;
    this.#first = start;
    this.#count = rows.length / this.width;
    this.#rows.set(rows);
  }
}
