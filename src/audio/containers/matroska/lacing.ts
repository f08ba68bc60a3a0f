const XIPH = 1;
const FIXED = 2;

/** At most 256 packets, each size in at most 8 bytes (or, with Xiph lacing, in as many as it takes). */
export const MAX_LACE_BYTES = 1 << 14;

export interface Laces {
  readonly sizes: readonly number[];
  /** Bytes in front of the first packet. */
  readonly headerBytes: number;
}

const NONE: Laces = { sizes: [], headerBytes: 0 };

/**
 * Sizes of the packets that share one block (RFC 9559 §10.3); none where they do not fit into it.
 *
 * @param head the block behind its header, or the first part of it
 * @param bytes length of all of it
 */
export function laceSizes(head: Uint8Array, lacing: number, bytes: number): Laces {
  if (head.length === 0) return NONE;
  const count = head[0] + 1;
  if (lacing === FIXED) {
    const size = (bytes - 1) / count;
    return Number.isInteger(size) ? { sizes: new Array<number>(count).fill(size), headerBytes: 1 } : NONE;
  }
  const sizes: number[] = [];
  let at = 1;
  let sum = 0;
  for (let i = 0; i < count - 1; i++) {
    const read = lacing === XIPH ? xiphSize(head, at) : ebmlSize(head, at, sizes.at(-1));
    if (!read || read.size < 0) return NONE;
    sizes.push(read.size);
    sum += read.size;
    at = read.end;
  }
  const rest = bytes - at - sum;
  return rest < 0 ? NONE : { sizes: [...sizes, rest], headerBytes: at };
}

function xiphSize(head: Uint8Array, from: number): { size: number; end: number } | undefined {
  let size = 0;
  for (let at = from; at < head.length; at++) {
    size += head[at];
    if (head[at] < 255) return { size, end: at + 1 };
  }
  return undefined;
}

/** The first size as it is, the others as differences to the one before. */
function ebmlSize(head: Uint8Array, at: number, before: number | undefined): { size: number; end: number } | undefined {
  const length = Math.clz32(head[at] ?? 0) - 23;
  if (length > 8 || at + length > head.length) return undefined;
  let value = head[at] & (0xff >> length);
  for (let i = 1; i < length; i++) value = value * 256 + head[at + i];
  const size = before === undefined ? value : before + value - (2 ** (7 * length - 1) - 1);
  return { size, end: at + length };
}
