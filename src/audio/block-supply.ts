import { type ByteSource, type ByteStream, SeekNeeded } from './audio-ports.ts';
import { OutOfBounds } from './block-reader.ts';

const BLOCK_BYTES = 1 << 18;
/** Blocks in memory, if no more are needed to repeat calls. */
const MAX_BLOCKS = 16;
/** Blocks that the calls since one copy may use: bounds the memory, and what is decoded again. */
const MAX_USED_BLOCKS = 128;
/** A gap of up to this number of blocks is read through: a new request takes longer. */
const MAX_SKIPPED_BLOCKS = 16;
/** Maximum number of fetches of each block, and of further ones: offsets may point back and forth. */
const MAX_FETCHES_OF_BLOCK = 8;
const MAX_FURTHER_FETCHES = 5000;
/** Reads of one call; more are an endless loop in it. */
const MAX_READS_OF_CALL = 1 << 18;
/** Bytes that one call reads, and how often it reads a small file: false headers make it go back again and again. */
const MAX_BYTES_OF_CALL = 128 << 20;
const MAX_READINGS_OF_CALL = 4;
const FURTHER_BYTES_OF_CALL = 8 << 20;

/** Thrown out of a read whose block is not in memory: `fetch` it, then repeat. */
export class MissingBlock extends Error {
  override readonly name = 'MissingBlock';
  constructor(readonly index: number) {
    super(`block ${index} is missing`);
  }
}

/**
 * Blocks of a source for a reader that cannot wait. A read takes what is in memory or throws. Blocks that were
 * fetched or used since the last `keepFrom` stay, so that the reader can repeat its reads.
 */
export class BlockSupply {
  /** Least recently fetched first. */
  readonly #blocks = new Map<number, Uint8Array>();
  readonly #used = new Set<number>();
  readonly #count: number;
  #fetchesLeft: number;
  readonly #maxBytesOfCall: number;
  #readsOfCall = 0;
  #bytesOfCall = 0;
  #lastIndex = 0;
  #stream: ByteStream | undefined;
  /** Number of the next block of the stream. */
  #streamIndex = 0;
  /** Unused bytes of the last chunk of the stream. */
  #rest: Uint8Array = new Uint8Array(0);

  constructor(
    private readonly source: ByteSource,
    private readonly blockBytes = BLOCK_BYTES,
  ) {
    this.#count = Math.ceil(source.sizeBytes / this.blockBytes);
    const readings = MAX_READINGS_OF_CALL * source.sizeBytes + FURTHER_BYTES_OF_CALL;
    this.#maxBytesOfCall = Math.min(MAX_BYTES_OF_CALL, readings);
    this.#fetchesLeft = MAX_FETCHES_OF_BLOCK * this.#count + MAX_FURTHER_FETCHES;
  }

  /** Bytes of the source up to the last block that was fetched, as progress. */
  get readBytes(): number {
    return Math.min(this.source.sizeBytes, this.#streamIndex * this.blockBytes);
  }

  /** Number of blocks that were used since `keepFrom`. */
  get usedBlocks(): number {
    return this.#used.size;
  }

  /**
   * Copies bytes at `position` to `into`, as many as the block has. @returns their number, 0 at the end of the source
   *
   * @throws MissingBlock; OutOfBounds if a call never ends
   */
  read(position: number, into: Uint8Array): number {
    if (++this.#readsOfCall > MAX_READS_OF_CALL || this.#bytesOfCall > this.#maxBytesOfCall)
      throw new OutOfBounds('a call reads without end');
    if (!(position >= 0 && position < this.source.sizeBytes)) return 0;
    const index = Math.floor(position / this.blockBytes);
    const block = this.#blocks.get(index);
    if (!block) throw new MissingBlock(index);
    this.#used.add(index);
    this.#lastIndex = index;
    const from = position - index * this.blockBytes;
    const bytes = block.subarray(from, from + into.length);
    into.set(bytes);
    this.#bytesOfCall += bytes.length;
    return bytes.length;
  }

  /** Begins a call: its reads are counted. */
  begin(): void {
    this.#readsOfCall = 0;
    this.#bytesOfCall = 0;
  }

  /** The next block in the file, if it is not in memory. */
  get nextMissing(): number | undefined {
    const next = this.#lastIndex + 1;
    return next < this.#count && !this.#blocks.has(next) ? next : undefined;
  }

  /** Reads before this point will not be repeated. */
  keepFrom(): void {
    this.#used.clear();
    this.#evict();
  }

  /**
   * Reads a block from the source, and those after it.
   *
   * @param count of blocks
   * @throws the errors of the source; SeekNeeded; OutOfBounds
   */
  async fetch(index: number, count = 1): Promise<void> {
    if (this.#fetchesLeft-- <= 0) throw new OutOfBounds('the file points back and forth');
    if (this.#used.size > MAX_USED_BLOCKS) throw new OutOfBounds('a call needs too many bytes');
    const ahead = index - this.#streamIndex;
    const isNear = this.#stream !== undefined && ahead >= 0 && (ahead <= MAX_SKIPPED_BLOCKS || !this.source.canSeek);
    if (!isNear) await this.#seek(index);
    const end = Math.min(this.#count, index + count);
    for (let next = index; next < end; next++) this.#used.add(next);
    while (this.#streamIndex < end) await this.#readBlock();
  }

  /** Frees the memory and ends the stream. */
  close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#blocks.clear();
  }

  #evict(): void {
    for (const index of this.#blocks.keys()) {
      if (this.#blocks.size <= MAX_BLOCKS) return;
      if (!this.#used.has(index)) this.#blocks.delete(index);
    }
  }

  async #seek(index: number): Promise<void> {
    if (this.#stream && !this.source.canSeek) throw new SeekNeeded('the source cannot go back');
    this.#stream?.close();
    this.#stream = undefined;
    this.#stream = await this.source.open(index * this.blockBytes);
    this.#streamIndex = index;
    this.#rest = new Uint8Array(0);
  }

  async #readBlock(): Promise<void> {
    const index = this.#streamIndex;
    const block = new Uint8Array(Math.min(this.blockBytes, this.source.sizeBytes - index * this.blockBytes));
    try {
      for (let filled = 0; filled < block.length; ) {
        if (this.#rest.length === 0) {
          const chunk = await this.#stream?.read();
          if (chunk === undefined) throw new RangeError(`the source gave ${filled} of ${block.length} bytes`);
          this.#rest = chunk;
        }
        const part = this.#rest.subarray(0, block.length - filled);
        block.set(part, filled);
        filled += part.length;
        this.#rest = this.#rest.subarray(part.length);
      }
    } catch (error) {
      this.#stream?.close();
      this.#stream = undefined;
      throw error;
    }
    this.#blocks.delete(index);
    this.#blocks.set(index, block);
    this.#streamIndex = index + 1;
    this.#evict();
  }
}
