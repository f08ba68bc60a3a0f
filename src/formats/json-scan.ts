/**
 * Scanners over the UTF-8 bytes of a JSON document that is known to be valid, in chunks cut anywhere. An output with a
 * value for each frame can have hundreds of megabytes; these find the turns in it without parsing, or holding, the
 * rest.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Where a value stands in a document, in bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** How deep a document is nested at a byte, and whether the byte is part of a string. */
class Nesting {
  depth = 0;
  inString = false;
  #escaped = false;

  /** @returns whether the byte is structure or a bare value, not part of a string's content */
  step(byte: number): boolean {
    if (this.inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.inString = false;
      return false;
    }
    if (byte === QUOTE) this.inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.depth--;
    return true;
  }
}

/** Finds the members of a document's root object. Names are read as Latin letters, as those of the contract are. */
export class MemberScanner {
  readonly members = new Map<string, ByteRange>();
  readonly #nesting = new Nesting();
  #passed = 0;
  #name = '';
  #valueStart: number | undefined;

  push(chunk: Uint8Array): void {
    const nesting = this.#nesting;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      const isStructure = nesting.step(byte);
      if (nesting.depth > 1) continue;
      if (!isStructure) {
        if (this.#valueStart === undefined && nesting.inString) this.#name += String.fromCharCode(byte);
      } else if (byte === COLON) {
        this.#valueStart = this.#passed + i + 1;
      } else if (byte === COMMA || nesting.depth === 0) {
        this.#endMember(this.#passed + i);
      }
    }
    this.#passed += chunk.length;
  }

  #endMember(end: number): void {
    const offset = this.#valueStart;
    if (offset !== undefined) this.members.set(this.#name, { offset, length: end - offset });
    this.#valueStart = undefined;
    this.#name = '';
  }
}

/** A turn with a confidence for each of hundreds of speakers has some kilobytes. */
const MAX_ITEM_BYTES = 1024 * 1024;

/** Cuts an array of objects into the bytes of its items. */
export class ItemScanner {
  readonly #nesting = new Nesting();
  /** Of an item that began in an earlier chunk. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;

  /** @throws when an item is too large to be a turn */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    const nesting = this.#nesting;
    let start = nesting.depth > 1 ? 0 : -1;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (!nesting.step(byte)) continue;
      if (byte === OPEN_BRACE && nesting.depth === 2) start = i;
      if (byte === CLOSE_BRACE && nesting.depth === 1) {
        yield this.#join(chunk.subarray(start, i + 1));
        start = -1;
      }
    }
    if (start >= 0) this.#keep(chunk.slice(start));
  }

  #keep(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#pieceBytes += piece.length;
    if (this.#pieceBytes > MAX_ITEM_BYTES) throw new Error('an item of the list is too large');
  }

  #join(last: Uint8Array): Uint8Array {
    if (this.#pieces.length === 0) return last;
    const item = new Uint8Array(this.#pieceBytes + last.length);
    let offset = 0;
    for (const piece of [...this.#pieces, last]) {
      item.set(piece, offset);
      offset += piece.length;
    }
    this.#pieces = [];
    this.#pieceBytes = 0;
    return item;
  }
}
