import { describe, expect, it } from 'vitest';
import { TextParts } from './r2-objects.ts';

const PART_BYTES = 200_000;

/** All parts of the pieces, one after the other. */
function partsOf(pieces: readonly string[]): Uint8Array[] {
  const parts = new TextParts(PART_BYTES);
  const taken: Uint8Array[] = [];
  for (const piece of pieces) {
    for (let left = piece; left !== ''; ) {
      left = parts.add(left);
      if (!parts.isFull) continue;
      taken.push(parts.bytes.slice());
      parts.clear();
    }
  }
  if (parts.bytes.length > 0) taken.push(parts.bytes.slice());
  return taken;
}

describe('TextParts', () => {
  it.each([
    ['letters', 'abcdefg'],
    ['two bytes each', 'äöü'],
    ['three bytes each', '語'],
    ['four bytes each, behind an odd one', 'x🎙'],
  ])('are equal but for the last one, and are the text: %s', (_, unit) => {
    const pieces = [1, 7, 30_000, 1, 90_000, 50_001].map((count) => unit.repeat(count));
    const parts = partsOf(pieces);
    expect(parts.length).toBeGreaterThan(2);
    expect(new Set(parts.slice(0, -1).map(({ length }) => length))).toEqual(new Set([PART_BYTES]));
    expect(Buffer.concat(parts).equals(Buffer.from(pieces.join('')))).toBe(true);
  });

  it('gives no empty part behind a full one', () => {
    expect(partsOf(['a'.repeat(PART_BYTES - 1), 'b']).map(({ length }) => length)).toEqual([PART_BYTES]);
    expect(partsOf([])).toEqual([]);
  });

  it('takes half a surrogate pair for the replacement character, as all encoders do', () => {
    expect(Buffer.concat(partsOf(['a\ud83cb'])).toString()).toBe('a\ufffdb');
  });
});
