import { expect, it } from 'vitest';
import { canonicalJson } from './create-jobs.ts';

it('writes equal requests as equal texts, in any order of fields', () => {
  const a = { url: 'x', metadata: { b: '1', a: '2' }, list: [{ d: 1, c: 2 }, 3], webhook: undefined };
  const b = { list: [{ c: 2, d: 1 }, 3], metadata: { a: '2', b: '1' }, url: 'x' };
  expect(canonicalJson(a)).toBe('{"list":[{"c":2,"d":1},3],"metadata":{"a":"2","b":"1"},"url":"x"}');
  expect(canonicalJson(b)).toBe(canonicalJson(a));
});

it('keeps the order of list items', () => {
  expect(canonicalJson({ list: [2, 1] })).not.toBe(canonicalJson({ list: [1, 2] }));
});
