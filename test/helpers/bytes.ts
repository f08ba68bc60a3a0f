import { readFileSync } from 'node:fs';

/** A copy of a file of `test/fixtures/formats`. */
export const formatFixture = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../fixtures/formats/${name}`, import.meta.url)));

/** Position of `text` in the bytes at or after `from`. @throws if it does not occur */
export function find(bytes: Uint8Array, text: string, from = 0): number {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(text, from, 'latin1');
  if (at < 0) throw new Error(`no "${text}" in the file`);
  return at;
}

/** A copy with other bytes from the first occurrence of `text` on. */
export function patched(
  bytes: Uint8Array,
  text: string,
  replacement: string | readonly number[],
  offset = 0,
): Uint8Array {
  const copy = bytes.slice();
  const values = typeof replacement === 'string' ? Uint8Array.from(replacement, (c) => c.charCodeAt(0)) : replacement;
  copy.set(values, find(bytes, text) + offset);
  return copy;
}
