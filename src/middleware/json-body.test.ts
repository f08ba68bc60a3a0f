import { expect, it } from 'vitest';
import { isJsonLike, JSON_MAX_DEPTH, JSON_MAX_VALUES, structureFault } from './json-body.ts';

it.each([
  undefined,
  '',
  ' ',
  'application/json',
  'Application/JSON;charset=utf-8',
  'application/ld+json',
  'text/plain',
])('reads Content-Type %j as JSON', (type) => expect(isJsonLike(type)).toBe(true));

it.each(['text/html', 'application/jsonx', 'application/json5', '+json', 'audio/wav', 'multipart/form-data', 'x'])(
  'does not read Content-Type %j as JSON',
  (type) => expect(isJsonLike(type)).toBe(false),
);

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

it('limits the depth', () => {
  expect(structureFault(nested(JSON_MAX_DEPTH))).toBeUndefined();
  expect(structureFault(nested(JSON_MAX_DEPTH + 1))).toMatch(/nested/);
  expect(structureFault(`[${nested(3)},`.repeat(20))).toBeUndefined();
});

it('limits the number of values', () => {
  expect(structureFault(`[${'1,'.repeat(JSON_MAX_VALUES - 2)}1]`)).toBeUndefined();
  expect(structureFault(`[${'1,'.repeat(JSON_MAX_VALUES)}1]`)).toMatch(/values/);
});

it.each(['[[[[', '\\"[[[[', '\\\\\\"[[[[', '{"a":"\\\\', ',,,,'.repeat(10_000)])(
  'ignores brackets and commas in strings: %#',
  (content) => {
    expect(structureFault(`{"a":"${content.repeat(20)}","b":1}`)).toBeUndefined();
  },
);

it('continues after a string that ends with an escaped backslash', () => {
  expect(structureFault(`{"a":"\\\\","b":${nested(JSON_MAX_DEPTH)}}`)).toMatch(/nested/);
});

it('accepts an unterminated string', () => {
  expect(structureFault('{"a":"b\\"')).toBeUndefined();
});
