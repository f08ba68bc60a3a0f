import { type ByteSource, type ByteStream, SeekNeeded } from './audio-ports.ts';
import { hasAscii, u32le } from './bytes.ts';
import { release } from './memory.ts';

/** Size of one cached block, bytes. */
export const BLOCK_BYTES = 1 << 20;

/** Cached blocks: a walk can go back this far without another read. */
const MAX_BLOCKS = 8;
/** Size of one cached block of tables, bytes; each is read separately. */
const TABLE_BLOCK_BYTES = 1 << 18;
const MAX_TABLE_BLOCKS = 4;
/** A gap of up to this number of blocks is read through: a new request takes longer. */
const MAX_SKIPPED_BLOCKS = 4;

/** The longest range of one request, bytes: bounds the memory of a reader. */
export const MAX_PEEK_BYTES = 8 << 20;

/**
 * Maximum number of reads of each block, and of further reads. Walks read a file about once; offsets that point back
 * and forth would fetch a megabyte from the server for every few bytes.
 */
const MAX_READS_OF_BLOCK = 8;
const MAX_FURTHER_READS = 5000;

/** Thrown if a request or the total of requests exceeds the limit: the file states impossible sizes or offsets. */
export class OutOfBounds extends RangeError {
  override readonly name = 'OutOfBounds';
}

/** Whether an error means that a file states impossible sizes or offsets. */
export const isOutOfBounds = (error: unknown): boolean => error instanceof OutOfBounds;

interface Block {
  readonly index: number;
  readonly buffer: Uint8Array;
  readonly length: number;
}

/**
 * Small reads over a source that is read forward: aligned blocks, least recently used out first. One stream fills them;
 * a position far ahead or back reopens it there. The buffers are allocated once and reused, so memory stays at eight
 * blocks (plus the largest range requested across a block border) for any length of file.
 */
export class BlockReader {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  readonly #blockBytes: number;
  #readsLeft: number;
  /** Oldest use first. */
  #blocks: Block[] = [];
  #tables: Block[] = [];
  #lastIndex = -1;
  #stream: ByteStream | undefined;
  /** Number of the next block of the stream. */
  #streamIndex = 0;
  /** Unused bytes of the last chunk of the stream. */
  #rest: Uint8Array = new Uint8Array(0);
  #scratch = new Uint8Array(0);

  constructor(source: ByteSource, blockBytes = BLOCK_BYTES) {
    this.#source = source;
    this.#blockBytes = blockBytes;
    this.sizeBytes = source.sizeBytes;
    this.#readsLeft = MAX_READS_OF_BLOCK * Math.ceil(this.sizeBytes / blockBytes) + MAX_FURTHER_READS;
  }

  /** Bytes read so far, as progress. */
  get readBytes(): number {
    return Math.min(this.sizeBytes, this.#streamIndex * this.#blockBytes);
  }

  /**
   * Bytes from `offset`: at least `minLength` of them, or up to the end of the source. More if they are in memory. The
   * view is valid until the next call.
   *
   * @throws the errors of the source
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

  /** Whether a walk cannot return from `to` to `from`. */
  isOneWay(from: number, to: number): boolean {
    return !this.#source.canSeek && to - from > (MAX_BLOCKS - 2) * this.#blockBytes;
  }

  /**
   * Like `peek`, for tables that are read together with the packets they describe: the stream keeps its position.
   *
   * @throws SeekNeeded if the table is before the position of the stream and the source cannot seek
   */
  async peekTable(offset: number, minLength: number): Promise<Uint8Array> {
    if (!(offset >= 0) || !(minLength >= 0) || minLength > MAX_PEEK_BYTES) throw new OutOfBounds('peek out of bounds');
    const index = Math.floor(offset / TABLE_BLOCK_BYTES);
    const inBlock = offset - index * TABLE_BLOCK_BYTES;
    if (offset >= this.sizeBytes || this.sizeBytes <= this.#blockBytes) return this.peek(offset, minLength);
    const wanted = Math.min(minLength, this.sizeBytes - offset);
    // Ranges across a block border are rare enough for a separate read.
    if (inBlock + wanted > TABLE_BLOCK_BYTES) return this.#read(offset, wanted);
    const cached = this.#tables.findIndex((block) => block.index === index);
    const block = cached >= 0 ? this.#tables.splice(cached, 1)[0] : await this.#loadTable(index);
    if (this.#tables.length >= MAX_TABLE_BLOCKS) this.#tables.shift();
    this.#tables.push(block);
    return block.buffer.subarray(inBlock);
  }

  /**
   * Exactly `length` bytes from `offset` if they are in the block used last; otherwise undefined: use `peek`. Views of
   * one block stay valid together until `peek` is called.
   */
  cached(offset: number, length: number): Uint8Array | undefined {
    const block = this.#blocks.at(-1);
    if (block === undefined || block.index !== this.#lastIndex) return undefined;
    const inBlock = offset - block.index * this.#blockBytes;
    if (!(inBlock >= 0) || !(length >= 0) || inBlock + length > block.length) return undefined;
    return block.buffer.subarray(inBlock, inBlock + length);
  }

  /** Frees the memory and ends the stream; nothing may be read after it. */
  close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    release(...this.#blocks.map(({ buffer }) => buffer), this.#scratch);
    this.#blocks = [];
    this.#tables = [];
  }

  async #loadTable(index: number): Promise<Block> {
    const buffer = await this.#read(index * TABLE_BLOCK_BYTES, TABLE_BLOCK_BYTES);
    return { index, buffer, length: buffer.length };
  }

  /** A copy of a range, read separately from the stream; from its blocks if the source cannot seek. */
  async #read(offset: number, length: number): Promise<Uint8Array> {
    const wanted = Math.min(length, this.sizeBytes - offset);
    if (!this.#source.canSeek) return (await this.peek(offset, wanted)).slice(0, wanted);
    this.#count();
    return (await this.#source.read(offset, wanted)).slice();
  }

  #count(): void {
    if (this.#readsLeft-- <= 0) throw new OutOfBounds('the file points back and forth');
  }

  async #block(index: number): Promise<Block> {
    const cached = this.#blocks.findIndex((block) => block.index === index);
    const block = cached >= 0 ? this.#blocks.splice(cached, 1)[0] : await this.#load(index);
    this.#blocks.push(block);
    this.#lastIndex = index;
    return block;
  }

  /** Reads forward to a block. The blocks in between are cached too. */
  async #load(index: number): Promise<Block> {
    const ahead = index - this.#streamIndex;
    const isNear = this.#stream !== undefined && ahead >= 0 && (ahead <= MAX_SKIPPED_BLOCKS || !this.#source.canSeek);
    if (!isNear) await this.#seek(index);
    for (;;) {
      const block = await this.#next();
      if (block.index === index) return block;
      this.#blocks.push(block);
    }
  }

  async #seek(index: number): Promise<void> {
    if (this.#stream && !this.#source.canSeek) throw new SeekNeeded('the source cannot go back');
    this.#stream?.close();
    this.#stream = undefined;
    this.#stream = await this.#source.open(index * this.#blockBytes);
    this.#streamIndex = index;
    this.#rest = new Uint8Array(0);
  }

  async #next(): Promise<Block> {
    this.#count();
    const index = this.#streamIndex;
    const length = Math.min(this.#blockBytes, this.sizeBytes - index * this.#blockBytes);
    const oldest = this.#blocks.length >= MAX_BLOCKS ? this.#blocks.shift() : undefined;
    const buffer = oldest?.buffer ?? new Uint8Array(Math.min(this.#blockBytes, this.sizeBytes));
    try {
      for (let filled = 0; filled < length; ) {
        if (this.#rest.length === 0) {
          const chunk = await this.#stream?.read();
          if (chunk === undefined) throw new RangeError(`the source gave ${filled} of ${length} bytes`);
          this.#rest = chunk;
        }
        const part = this.#rest.subarray(0, length - filled);
        buffer.set(part, filled);
        filled += part.length;
        this.#rest = this.#rest.subarray(part.length);
      }
    } catch (error) {
      this.#stream?.close();
      this.#stream = undefined;
      throw error;
    }
    this.#streamIndex = index + 1;
    return { index, buffer, length };
  }
}

/** Successive tags that are skipped; real files have one or two. */
const MAX_TAGS = 16;

const ID3V1_BYTES = 128;

/** Length in bytes of the ID3v2 tag that starts at `at`, 0 if there is none. */
function id3v2Bytes(bytes: Uint8Array, at: number): number {
  if (!hasAscii(bytes, at, 'ID3') || bytes.length < at + 10) return 0;
  const size = bytes.subarray(at + 6, at + 10);
  if (bytes[at + 3] === 0xff || bytes[at + 4] === 0xff || size.some((byte) => byte >= 0x80)) return 0;
  const footer = bytes[at + 5] & 0x10 ? 10 : 0;
  return 10 + ((size[0] << 21) | (size[1] << 14) | (size[2] << 7) | size[3]) + footer;
}

/** Length of an ID3v2 or APE tag at the start of `head`; 0 if there is none. */
function headTagBytes(head: Uint8Array): number {
  const ape = hasAscii(head, 0, 'APETAGEX') && head.length >= 32 ? 32 + u32le(head, 12) : 0;
  return id3v2Bytes(head, 0) || ape;
}

/** Offset of the first byte after the ID3v2 and APE tags at the start of the file. Ignores tags above the file size. */
export async function skipHeadTags(reader: BlockReader): Promise<number> {
  let offset = 0;
  for (let count = 0; count < MAX_TAGS; count++) {
    const length = headTagBytes(await reader.peek(offset, 32));
    if (length === 0 || offset + length >= reader.sizeBytes) break;
    offset += length;
  }
  return offset;
}

/** Offset of the first byte after the tags of any kind at `from`: concatenated files have tags of both between them. */
export async function skipTags(reader: BlockReader, from: number, endByte: number): Promise<number> {
  let offset = from;
  for (let count = 0; count < MAX_TAGS && offset < endByte; count++) {
    const head = await reader.peek(offset, 32);
    const length = headTagBytes(head) || (hasAscii(head, 0, 'TAG') ? ID3V1_BYTES : 0);
    if (length === 0 || offset + length > endByte) break;
    offset += length;
  }
  return offset;
}

/** Bytes searched in one step. */
const STEP_BYTES = 1 << 16;

/** Position of the first non-zero byte in `[from, end)`; `end` if there is none. */
export async function skipZeros(reader: BlockReader, from: number, end: number): Promise<number> {
  for (let at = from; at < end; ) {
    const view = await reader.peek(at, Math.min(STEP_BYTES, end - at));
    if (view.length === 0) return end;
    const zeros = view.findIndex((byte) => byte !== 0);
    if (zeros >= 0) return Math.min(at + zeros, end);
    at += view.length;
  }
  return end;
}
