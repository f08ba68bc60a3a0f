import { describe, expect, it } from 'vitest';
import { ItemScanner, MemberScanner } from './json-scan.ts';

const document = {
  'na"me\\': 'a "quoted" \\ text, with ] } [ {',
  diarization: [
    { speaker: 'Zoë, "the" [first] \\', start: 0, end: 1.5, confidence: { SPEAKER_00: 9, '}': 1 } },
    { speaker: 'B', start: 1, end: 2 },
  ],
  empty: [],
  score: { SPEAKER_00: [0.1, 0.2], nested: { diarization: [1] } },
  plain: null,
  warning: 'last',
};
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function members(text: string, chunkBytes: number) {
  const bytes = encoder.encode(text);
  const scanner = new MemberScanner();
  for (let at = 0; at < bytes.length; at += chunkBytes) scanner.push(bytes.subarray(at, at + chunkBytes));
  return { bytes, members: scanner.members };
}
function items(bytes: Uint8Array, chunkBytes: number): unknown[] {
  const scanner = new ItemScanner();
  const found: unknown[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    // The memory of a chunk may be reused after `push`.
    const chunk = bytes.slice(at, at + chunkBytes);
    for (const item of scanner.push(chunk)) found.push(JSON.parse(decoder.decode(item)));
    chunk.fill(0);
  }
  return found;
}

describe.each([1, 2, 3, 7, 64, 100_000])('in chunks of %i bytes', (chunkBytes) => {
  it.each([undefined, 1])('finds every member and every item, indented by %s', (indent) => {
    const { bytes, members: found } = members(JSON.stringify(document, null, indent), chunkBytes);
    const read = (name: string) => {
      const { offset, length } = found.get(name) ?? { offset: 0, length: 0 };
      return bytes.subarray(offset, offset + length);
    };
    for (const [name, value] of Object.entries(document).slice(1)) {
      expect(JSON.parse(decoder.decode(read(name)))).toEqual(value);
    }
    expect(found.size).toBe(Object.keys(document).length);
    expect(items(read('diarization'), chunkBytes)).toEqual(document.diarization);
    expect(items(read('empty'), chunkBytes)).toEqual([]);
  });
});

it('finds nothing in an empty object', () => {
  expect(members('{}', 10).members.size).toBe(0);
});

it('throws for an item that is too large to be a turn', () => {
  const scanner = new ItemScanner();
  const push = () => {
    for (const _ of scanner.push(encoder.encode('x'.repeat(100_000))))
      throw new Error('an incomplete item was returned');
  };
  for (const _ of scanner.push(encoder.encode('[{"speaker":"'))) throw new Error('an incomplete item was returned');
  expect(() => {
    for (let i = 0; i < 20; i++) push();
  }).toThrow(/too large/);
});

it('finds a member of a hundred megabytes', () => {
  const scanner = new MemberScanner();
  const numbers = encoder.encode('0.123,'.repeat(10_000));
  scanner.push(encoder.encode('{"score":['));
  for (let i = 0; i < 1700; i++) scanner.push(numbers);
  scanner.push(encoder.encode('0],"warning":"x"}'));
  expect(scanner.members.get('score')?.length).toBe(1700 * numbers.length + 3);
});
