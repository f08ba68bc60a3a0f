import { release } from './memory.ts';
import type { ByteSource } from './types.ts';

/** Size of one cached block, bytes: one range request each. */
export const BLOCK_BYTES = 1 << 20;

/** Blocks held at once: the one in use, the one before it, the one being read ahead. */
const MAX_BLOCKS = 3;

/** The longest stretch that may be asked for at once, bytes; nothing in a file can make a reader hold more. */
export const MAX_PEEK_BYTES = 8 << 20;

/**
 * How often each block may be read again, all walks of a reader together, and so many more. Walks go through a file a few times; places in a file
 * that point back and forth would have the server asked for a megabyte for every few bytes.
 */
const MAX_READS_OF_BLOCK = 32;
const MAX_FURTHER_READS = 5000;

/** More was asked for, at once or again and again, than a reader gives: sizes or places in the file that cannot be. */
export class OutOfBounds extends RangeError {
  override readonly name = 'OutOfBounds';
}

interface Block {
  readonly index: number;
  readonly buffer: Uint8Array;
  readonly length: number;
}

/**
 * Small reads over a slow source: aligned blocks, least recently used out first, one block read ahead while the
 * access is sequential. The buffers are allocated once and reused, so memory stays at three blocks (plus the largest
 * stretch asked for across a block border) however long the file is.
 *
 * Reads of the source are never concurrent, as its views may be reused by its next call.
 */
export class BlockReader {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  readonly #blockBytes: number;
  #readsLeft: number;
  /** Oldest use first. */
  #blocks: Block[] = [];
  #lastIndex = -1;
  #pending: { readonly index: number; readonly done: Promise<Block> } | undefined;
  #scratch = new Uint8Array(0);

  constructor(source: ByteSource, blockBytes = BLOCK_BYTES) {
    this.#source = source;
    this.#blockBytes = blockBytes;
    this.sizeBytes = source.sizeBytes;
    this.#readsLeft = MAX_READS_OF_BLOCK * Math.ceil(this.sizeBytes / blockBytes) + MAX_FURTHER_READS;
  }

  /**
   * Bytes from `offset` on: at least `minLength` of them, or all that the source still has. More when they are at hand.
   * The view is valid until the next call. Failures of the source are thrown as they come.
   */
  async peek(offset: number, minLength: number): Promise<Uint8Array> {
    if (!(offset >= 0) || !(minLength >= 0) || minLength > MAX_PEEK_BYTES) throw new OutOfBounds('peek out of bounds');
    if (offset >= this.sizeBytes) return new Uint8Array(0);
    const wanted = Math.min(minLength, this.sizeBytes - offset);
    const first = Math.floor(offset / this.#blockBytes);
    const inBlock = offset - first * this.#blockBytes;
    const block = await this.#block(first);
    if (inBlock + wanted <= block.length) return block.buffer.subarray(inBlock, block.length);
    if (this.#scratch.length < wanted) this.#scratch = new Uint8Array(wanted);
    let filled = 0;
    for (let index = first; filled < wanted; index++) {
      const { buffer, length } = await this.#block(index);
      const from = index === first ? inBlock : 0;
      const part = buffer.subarray(from, Math.min(length, from + wanted - filled));
      if (part.length === 0) break;
      this.#scratch.set(part, filled);
      filled += part.length;
    }
    return this.#scratch.subarray(0, filled);
  }

  /**
   * Exactly `length` bytes from `offset` on where they lie in the block used last, without waiting; undefined elsewhere, which `peek` answers.
   * Views of one block stay valid together, until `peek` is called.
   */
  held(offset: number, length: number): Uint8Array | undefined {
    const block = this.#blocks.at(-1);
    if (block === undefined || block.index !== this.#lastIndex) return undefined;
    const inBlock = offset - block.index * this.#blockBytes;
    if (!(inBlock >= 0) || !(length >= 0) || inBlock + length > block.length) return undefined;
    return block.buffer.subarray(inBlock, inBlock + length);
  }

  /** Gives its memory back, not the source's; nothing may be read afterwards. What is being read ahead goes to nobody. */
  close(): void {
    release(...this.#blocks.map(({ buffer }) => buffer), this.#scratch);
    this.#blocks = [];
  }

  async #block(index: number): Promise<Block> {
    let block = this.#cached(index);
    while (!block && this.#pending) {
      // Whatever is under way must end before the next read; its failure matters only to who asked for that block.
      const { index: under, done } = this.#pending;
      const settled = await done.catch(() => undefined);
      if (under === index) block = settled;
    }
    if (!block) block = await this.#load(index);
    this.#touch(block);
    const sequential = index === this.#lastIndex + 1;
    this.#lastIndex = index;
    const next = index + 1;
    if (sequential && !this.#pending && next * this.#blockBytes < this.sizeBytes && !this.#cached(next)) {
      this.#load(next).catch(() => undefined);
    }
    return block;
  }

  #cached(index: number): Block | undefined {
    return this.#blocks.find((block) => block.index === index);
  }

  #touch(block: Block): void {
    const at = this.#blocks.indexOf(block);
    if (at >= 0) this.#blocks.splice(at, 1);
    this.#blocks.push(block);
  }

  #load(index: number): Promise<Block> {
    const done = this.#fill(index).finally(() => {
      if (this.#pending?.done === done) this.#pending = undefined;
    });
    this.#pending = { index, done };
    return done;
  }

  async #fill(index: number): Promise<Block> {
    const offset = index * this.#blockBytes;
    const length = Math.min(this.#blockBytes, this.sizeBytes - offset);
    if (this.#readsLeft-- <= 0) throw new OutOfBounds('the file points back and forth');
    const bytes = await this.#source.read(offset, length);
    if (bytes.length < length) throw new RangeError(`the source gave ${bytes.length} of ${length} bytes`);
    // The most recently used block is never the one thrown out: a view of it may still be in use.
    const oldest = this.#blocks.length >= MAX_BLOCKS ? this.#blocks.shift() : undefined;
    const buffer = oldest?.buffer ?? new Uint8Array(Math.min(this.#blockBytes, this.sizeBytes));
    buffer.set(bytes.subarray(0, length));
    const block = { index, buffer, length };
    // Read ahead counts as older than the block in use, so that a seek does not throw that one out first.
    if (this.#blocks.length > 0) this.#blocks.splice(this.#blocks.length - 1, 0, block);
    else this.#blocks.push(block);
    return block;
  }
}
