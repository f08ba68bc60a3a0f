import { describe, expect, it } from 'vitest';
import { TextParts } from './r2-objects.ts';

const PART_BYTES = 200_000;

/** All parts of the chunks, in order. */
function partsOf(chunks: readonly string[]): Uint8Array[] {
  const parts = new TextParts(PART_BYTES);
  const all: Uint8Array[] = [];
  for (const chunk of chunks) {
    for (let rest = chunk; rest !== ''; ) {
      rest = parts.add(rest);
      if (!parts.isFull) continue;
      all.push(parts.bytes.slice());
      parts.clear();
    }
  }
  if (parts.bytes.length > 0) all.push(parts.bytes.slice());
  return all;
}

describe('TextParts', () => {
  it.each([
    ['letters', 'abcdefg'],
    ['two bytes each', 'äöü'],
    ['three bytes each', '語'],
    ['four bytes each, after a single byte', 'x🎙'],
  ])('splits text into parts of equal size: %s', (_, unit) => {
    const chunks = [1, 7, 30_000, 1, 90_000, 50_001].map((count) => unit.repeat(count));
    const parts = partsOf(chunks);
    expect(parts.length).toBeGreaterThan(2);
    expect(new Set(parts.slice(0, -1).map(({ length }) => length))).toEqual(new Set([PART_BYTES]));
    expect(Buffer.concat(parts).equals(Buffer.from(chunks.join('')))).toBe(true);
  });

  it('gives no empty part after a full one', () => {
    expect(partsOf(['a'.repeat(PART_BYTES - 1), 'b']).map(({ length }) => length)).toEqual([PART_BYTES]);
    expect(partsOf([])).toEqual([]);
  });

  it('encodes half a surrogate pair as the replacement character', () => {
    expect(Buffer.concat(partsOf(['a\ud83cb'])).toString()).toBe('a\ufffdb');
  });
});
