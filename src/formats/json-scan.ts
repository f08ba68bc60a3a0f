/**
 * Scanners over the UTF-8 bytes of a valid JSON document, in chunks of any size. An output with a value per frame can
 * have hundreds of megabytes; these find the turns without parsing the rest or keeping it in memory.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Position of a value in a document, in bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** Tracks the nesting depth at a byte, and whether the byte is part of a string. */
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

/** Finds the members of a document's root object. Names are read as ASCII, like all names of the contract. */
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

/** Far above the size of a turn: with confidences for hundreds of speakers it has some kilobytes. */
const MAX_ITEM_BYTES = 1024 * 1024;

/** Splits an array of objects into the bytes of its items. */
export class ItemScanner {
  readonly #nesting = new Nesting();
  /** Bytes of an item that began in an earlier chunk. */
  #fragments: Uint8Array[] = [];
  #fragmentBytes = 0;

  /** @throws if an item is too large to be a turn */
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

  #keep(bytes: Uint8Array): void {
    this.#fragments.push(bytes);
    this.#fragmentBytes += bytes.length;
    if (this.#fragmentBytes > MAX_ITEM_BYTES) throw new Error('an item of the list is too large');
  }

  #join(last: Uint8Array): Uint8Array {
    if (this.#fragments.length === 0) return last;
    const item = new Uint8Array(this.#fragmentBytes + last.length);
    let offset = 0;
    for (const bytes of [...this.#fragments, last]) {
      item.set(bytes, offset);
      offset += bytes.length;
    }
    this.#fragments = [];
    this.#fragmentBytes = 0;
    return item;
  }
}
