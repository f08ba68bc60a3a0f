import { release } from '../audio/memory.ts';

const FIRST_ROWS = 64;

/**
 * Vectors as rows of one array that grows. As arrays of their own the hundreds of a shard would live as long as it does, and be left to the collector
 * of old objects, which lets tens of megabytes pile up.
 */
export class Rows {
  #values: Float32Array;
  #count = 0;

  constructor(private readonly dimension: number) {
    this.#values = new Float32Array(FIRST_ROWS * dimension);
  }

  /** @param vector [dimension], which is copied and given back */
  take(vector: Float32Array): void {
    const at = this.#count * this.dimension;
    if (at === this.#values.length) {
      const before = this.#values;
      this.#values = new Float32Array(2 * before.length);
      this.#values.set(before);
      release(before);
    }
    this.#values.set(vector, at);
    this.#count++;
    release(vector);
  }

  /** @returns [vectors taken, dimension]; nothing may be taken afterwards */
  finish(): Float32Array {
    const rows = this.#values.slice(0, this.#count * this.dimension);
    release(this.#values);
    return rows;
  }
}
