/**
 * bzip2 decompression, after J. Seward's reference implementation (bzip2 1.0): Huffman codes → move-to-front with zero
 * runs → inverse Burrows–Wheeler transform → run lengths. Verifies the checksum of each block. Needed because the
 * public weights are .tar.bz2 files and a pull must need only Node.
 */

const GROUP_SYMBOLS = 50;
const MAX_CODE_BITS = 20;
const BLOCK_MAGIC = 0x314159265359;
const END_MAGIC = 0x177245385090;
const RUN_A = 0;
const RUN_B = 1;

class Bits {
  private position = 0;
  private held = 0;
  private heldBits = 0;
  constructor(private readonly bytes: Uint8Array) {}

  /** Reads the next `count` ≤ 24 bits, most significant first. */
  read(count: number): number {
    while (this.heldBits < count) {
      if (this.position >= this.bytes.length) throw new Error('bzip2: the data ends too early');
      this.held = ((this.held << 8) | this.bytes[this.position++]) >>> 0;
      this.heldBits += 8;
    }
    this.heldBits -= count;
    const value = (this.held >>> this.heldBits) & ((1 << count) - 1);
    this.held &= (1 << this.heldBits) - 1;
    return value;
  }

  read32(): number {
    return this.read(16) * 65536 + this.read(16);
  }

  read48(): number {
    return this.read(24) * 16777216 + this.read(24);
  }

  /** Skips the rest of a byte. @returns whether more bytes follow */
  nextStream(): boolean {
    this.held = 0;
    this.heldBits = 0;
    return this.position < this.bytes.length;
  }
}

/** A canonical Huffman code as limits per length. */
interface HuffmanTable {
  readonly minBits: number;
  readonly maxBits: number;
  /** Largest code of each length; -1 where there is none. */
  readonly limit: Int32Array;
  /** Difference between a code of each length and its index in `order`. */
  readonly base: Int32Array;
  /** Symbols by length, then value. */
  readonly order: Uint16Array;
}

/**
 * Decompresses a .bz2 file of one or more streams.
 *
 * @throws for data that is not bzip2, is truncated, or has a wrong checksum
 */
export function bunzip2(input: Uint8Array): Uint8Array {
  const bits = new Bits(input);
  const blocks: Uint8Array[] = [];
  do {
    if (bits.read(24) !== 0x425a68) throw new Error('bzip2: not a bzip2 file'); // 'BZh'
    const level = bits.read(8) - 0x30;
    if (level < 1 || level > 9) throw new Error('bzip2: not a bzip2 file');
    const transformed = new Uint32Array(level * 100_000);
    let streamCheck = 0;
    for (let magic = bits.read48(); magic !== END_MAGIC; magic = bits.read48()) {
      if (magic !== BLOCK_MAGIC) throw new Error('bzip2: a block is damaged');
      const expected = bits.read32();
      const block = readBlock(bits, transformed);
      if (checksum(block) !== expected) throw new Error('bzip2: a block fails its checksum');
      streamCheck = (((streamCheck << 1) | (streamCheck >>> 31)) ^ expected) >>> 0;
      blocks.push(block);
    }
    if (bits.read32() !== streamCheck) throw new Error('bzip2: the file fails its checksum');
  } while (bits.nextStream());
  return Buffer.concat(blocks);
}

function readBlock(bits: Bits, transformed: Uint32Array): Uint8Array {
  if (bits.read(1) === 1) throw new Error('bzip2: randomised blocks (before version 0.9.5) are not supported');
  const origin = bits.read(24);
  const symbols = readSymbolMap(bits);
  const alphabetSize = symbols.length + 2;
  const tableCount = bits.read(3);
  const selectors = readSelectors(bits, tableCount);
  const tables = Array.from({ length: tableCount }, () => buildTable(readCodeLengths(bits, alphabetSize)));
  const length = readTransformed(bits, symbols, selectors, tables, transformed);
  if (origin >= length) throw new Error('bzip2: a block is damaged');
  return expandRuns(invertTransform(transformed, length, origin));
}

/** Reads the bytes that occur in the block: a bit per group of 16, then a bit per byte of the groups in use. */
function readSymbolMap(bits: Bits): Uint8Array {
  const groups = bits.read(16);
  const symbols: number[] = [];
  for (let group = 0; group < 16; group++) {
    if ((groups & (0x8000 >> group)) === 0) continue;
    const used = bits.read(16);
    for (let index = 0; index < 16; index++) if (used & (0x8000 >> index)) symbols.push(group * 16 + index);
  }
  return Uint8Array.from(symbols);
}

/** Reads the table of each group of 50 symbols, move-to-front coded. */
function readSelectors(bits: Bits, tableCount: number): Uint8Array {
  if (tableCount < 2 || tableCount > 6) throw new Error('bzip2: a block is damaged');
  const selectors = new Uint8Array(bits.read(15));
  const recent = Array.from({ length: tableCount }, (_, index) => index);
  for (let index = 0; index < selectors.length; index++) {
    let position = 0;
    while (bits.read(1) === 1) if (++position >= tableCount) throw new Error('bzip2: a block is damaged');
    recent.unshift(...recent.splice(position, 1));
    selectors[index] = recent[0];
  }
  return selectors;
}

function readCodeLengths(bits: Bits, alphabetSize: number): Uint8Array {
  const lengths = new Uint8Array(alphabetSize);
  let length = bits.read(5);
  for (let symbol = 0; symbol < alphabetSize; symbol++) {
    while (bits.read(1) === 1) length += bits.read(1) === 0 ? 1 : -1;
    if (length < 1 || length > MAX_CODE_BITS) throw new Error('bzip2: a block is damaged');
    lengths[symbol] = length;
  }
  return lengths;
}

function buildTable(lengths: Uint8Array): HuffmanTable {
  const minBits = Math.min(...lengths);
  const maxBits = Math.max(...lengths);
  const order = new Uint16Array(lengths.length);
  const limit = new Int32Array(MAX_CODE_BITS + 1).fill(-1);
  const base = new Int32Array(MAX_CODE_BITS + 1);
  let code = 0;
  let filled = 0;
  for (let bitCount = minBits; bitCount <= maxBits; bitCount++) {
    base[bitCount] = code - filled;
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] !== bitCount) continue;
      order[filled++] = symbol;
      limit[bitCount] = code++;
    }
    code <<= 1;
  }
  return { minBits, maxBits, limit, base, order };
}

function readSymbol(bits: Bits, { minBits, maxBits, limit, base, order }: HuffmanTable): number {
  let code = bits.read(minBits);
  for (let length = minBits; length <= maxBits; length++) {
    if (code <= limit[length]) return order[code - base[length]];
    code = (code << 1) | bits.read(1);
  }
  throw new Error('bzip2: a block is damaged');
}

/**
 * Undoes the Huffman and move-to-front coding.
 *
 * @param transformed receives a byte per entry, in its low 8 bits
 * @returns number of bytes
 */
function readTransformed(
  bits: Bits,
  symbols: Uint8Array,
  selectors: Uint8Array,
  tables: readonly HuffmanTable[],
  transformed: Uint32Array,
): number {
  const recent = Uint8Array.from(symbols);
  const endOfBlock = symbols.length + 1;
  let length = 0;
  let run = 0;
  let runBit = 1;
  for (let index = 0; ; index++) {
    const table = tables[selectors[Math.floor(index / GROUP_SYMBOLS)]];
    if (!table) throw new Error('bzip2: a block is damaged');
    const symbol = readSymbol(bits, table);
    if (symbol === RUN_A || symbol === RUN_B) {
      run += symbol === RUN_A ? runBit : 2 * runBit; // the run's length in bijective base 2
      runBit *= 2;
      if (run > transformed.length) throw new Error('bzip2: a block is damaged');
      continue;
    }
    if (length + run + 1 > transformed.length + (symbol === endOfBlock ? 1 : 0)) {
      throw new Error('bzip2: a block is damaged');
    }
    transformed.fill(recent[0], length, length + run);
    length += run;
    run = 0;
    runBit = 1;
    if (symbol === endOfBlock) return length;
    const byte = recent[symbol - 1];
    recent.copyWithin(1, 0, symbol - 1);
    recent[0] = byte;
    transformed[length++] = byte;
  }
}

/** Inverse Burrows–Wheeler transform; the upper 24 bits of `transformed` become the links of the permutation. */
function invertTransform(transformed: Uint32Array, length: number, origin: number): Uint8Array {
  const starts = new Uint32Array(257);
  for (let index = 0; index < length; index++) starts[transformed[index] + 1]++;
  for (let byte = 0; byte < 256; byte++) starts[byte + 1] += starts[byte];
  for (let index = 0; index < length; index++) transformed[starts[transformed[index] & 0xff]++] |= index << 8;
  const bytes = new Uint8Array(length);
  let link = transformed[origin] >>> 8;
  for (let index = 0; index < length; index++) {
    bytes[index] = transformed[link] & 0xff;
    link = transformed[link] >>> 8;
  }
  return bytes;
}

/** Expands runs: after four equal bytes, the next byte is the number of further equal bytes. */
function expandRuns(bytes: Uint8Array): Uint8Array {
  let total = 0;
  const walk = (emit: (byte: number, count: number) => void): void => {
    let equal = 0;
    for (let index = 0; index < bytes.length; index++) {
      equal = index > 0 && equal > 0 && bytes[index] === bytes[index - 1] ? equal + 1 : 1;
      emit(bytes[index], 1);
      if (equal === 4 && index + 1 < bytes.length) {
        emit(bytes[index], bytes[++index]);
        equal = 0;
      }
    }
  };
  walk((_, count) => {
    total += count;
  });
  const output = new Uint8Array(total);
  let at = 0;
  walk((byte, count) => {
    output.fill(byte, at, at + count);
    at += count;
  });
  return output;
}

const checksumTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index << 24;
  for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value >>> 0;
});

/** CRC-32 with the most significant bit first. */
function checksum(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = ((value << 8) ^ checksumTable[(value >>> 24) ^ byte]) >>> 0;
  return ~value >>> 0;
}
