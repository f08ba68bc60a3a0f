import { release } from '../audio/memory.ts';

const FIRST_BYTES = 64 * 1024;

/**
 * Text as UTF-8 in parts of exactly `partBytes`, the last one shorter, out of one buffer: the output of a day is hundreds of megabytes, and
 * an array for every piece of it would be garbage that piles up. A character may lie in two parts.
 */
export class TextParts {
  readonly #encoder = new TextEncoder();
  #buffer: Uint8Array<ArrayBuffer>;
  #used = 0;
  /** Bytes of the last character that the part had no room for. */
  #rest = new Uint8Array(0);

  constructor(private readonly partBytes: number) {
    this.#buffer = new Uint8Array(Math.min(FIRST_BYTES, partBytes));
  }

  /** @returns what of the text did not fit; then the part is full and has to be taken */
  add(text: string): string {
    let left = text;
    while (left !== '') {
      const { read, written } = this.#encoder.encodeInto(left, this.#buffer.subarray(this.#used));
      this.#used += written;
      left = left.slice(read);
      if (left === '') break;
      if (this.#buffer.length < this.partBytes) this.#grow();
      else return this.#split(left);
    }
    return left;
  }

  /** As `add`, for bytes. */
  addBytes(bytes: Uint8Array): Uint8Array {
    while (this.#buffer.length < this.partBytes && this.#used + bytes.length > this.#buffer.length) this.#grow();
    const taken = bytes.subarray(0, this.#buffer.length - this.#used);
    this.#buffer.set(taken, this.#used);
    this.#used += taken.length;
    return bytes.subarray(taken.length);
  }

  get isFull(): boolean {
    return this.#used === this.partBytes;
  }

  /** The part so far; valid until `clear`. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#used);
  }

  /** Begins the next part. */
  clear(): void {
    this.#buffer.set(this.#rest);
    this.#used = this.#rest.length;
    this.#rest = new Uint8Array(0);
  }

  #grow(): void {
    const before = this.#buffer;
    this.#buffer = new Uint8Array(Math.min(this.partBytes, 2 * before.length));
    this.#buffer.set(before);
    release(before);
  }

  /** Fills the part with the first bytes of a character that does not fit. */
  #split(text: string): string {
    const [character = ''] = text;
    const bytes = this.#encoder.encode(character);
    const room = this.partBytes - this.#used;
    this.#buffer.set(bytes.subarray(0, room), this.#used);
    this.#used = this.partBytes;
    this.#rest = bytes.slice(room);
    return text.slice(character.length);
  }
}
