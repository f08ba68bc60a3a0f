import type { BlockReader } from '../../block-reader.ts';

/** One EBML element (RFC 8794): `[bodyStart, bodyStart + size)` without its header. */
export interface Element {
  readonly id: number;
  readonly start: number;
  readonly bodyStart: number;
  /** Undefined for an element of unknown size, which ends where something of a higher level begins. */
  readonly size: number | undefined;
}

/** Longest header: 4 bytes of id, 8 of size. */
export const MAX_HEADER_BYTES = 12;

/** Elements walked on one level outside the clusters. */
const MAX_ELEMENTS = 10_000;

/** The element whose header is at `at` of `view`, which lies at `position` in the file; undefined where there is none. */
export function parseElement(view: Uint8Array, at: number, position: number): Element | undefined {
  const idBytes = Math.clz32(view[at] ?? 0) - 23;
  const sizeAt = at + idBytes;
  const sizeBytes = Math.clz32(view[sizeAt] ?? 0) - 23;
  if (idBytes > 4 || sizeBytes > 8 || sizeAt + sizeBytes > view.length) return undefined;
  let id = 0;
  for (let i = at; i < sizeAt; i++) id = id * 256 + view[i];
  let size = view[sizeAt] & (0xff >> sizeBytes);
  let isUnknown = size === 0xff >> sizeBytes;
  for (let i = 1; i < sizeBytes; i++) {
    size = size * 256 + view[sizeAt + i];
    isUnknown &&= view[sizeAt + i] === 0xff;
  }
  const bodyStart = position + idBytes + sizeBytes;
  return { id, start: position, bodyStart, size: isUnknown ? undefined : size };
}

/** Elements in `[from, to)` of the file, up to the first that cannot be one or has no end. */
export async function* elementsOf(reader: BlockReader, from: number, to: number): AsyncGenerator<Element> {
  let position = from;
  for (let count = 0; count < MAX_ELEMENTS && position < to; count++) {
    const element = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (!element) return;
    yield element;
    if (element.size === undefined) return;
    position = element.bodyStart + element.size;
  }
}

/** The same in bytes that are at hand. */
export function* elementsIn(bytes: Uint8Array): Generator<{ id: number; body: Uint8Array }> {
  for (let at = 0; at < bytes.length; ) {
    const element = parseElement(bytes, at, at);
    if (!element) return;
    const end = element.size === undefined ? bytes.length : element.bodyStart + element.size;
    yield { id: element.id, body: bytes.subarray(element.bodyStart, end) };
    at = end;
  }
}

/** A copy of an element's body, at most `maxBytes` of it. */
export async function readBody(reader: BlockReader, element: Element, maxBytes: number): Promise<Uint8Array> {
  const length = Math.min(element.size ?? maxBytes, maxBytes);
  return (await reader.peek(element.bodyStart, length)).slice(0, length);
}

/** Unsigned big-endian of up to eight bytes (RFC 8794, section 7.2); exact up to 2^53. */
export function uintOf(body: Uint8Array): number {
  let value = 0;
  for (const byte of body.subarray(0, 8)) value = value * 256 + byte;
  return value;
}

/** Signed two's complement of up to eight bytes (RFC 8794, section 7.1); exact up to 2^53. */
export function intOf(body: Uint8Array): number {
  const value = uintOf(body);
  return body.length > 0 && body[0] & 0x80 ? value - 256 ** Math.min(8, body.length) : value;
}

/** IEEE 754 of four or eight bytes (RFC 8794, section 7.3); 0 for any other length. */
export function floatOf(body: Uint8Array): number {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  return body.length === 4 ? view.getFloat32(0) : body.length === 8 ? view.getFloat64(0) : 0;
}
