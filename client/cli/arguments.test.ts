import { expect, it } from 'vitest';
import { optionOfField, seconds, wholeNumber, wholeNumberIn } from './arguments.ts';

it('maps fields of requests to options', () => {
  const fields = ['numSpeakers', 'latency', 'turnLevelConfidence', 'matching.threshold', 'url', 'metadata'];
  expect(fields.map(optionOfField)).toEqual([
    '--num-speakers',
    '--latency',
    '--turn-level-confidence',
    '--threshold',
    'url',
    'metadata',
  ]);
});

it('refuses numbers of seconds that are negative or too large', () => {
  expect(seconds('1e12')).toBe(1e12);
  for (const text of ['1e308', '-1', '', 'NaN']) expect(() => seconds(text)).toThrow(/from 0 to/);
});

it('accepts the same numbers of speakers as the API', () => {
  expect(['1', '1000000', '100000000000000000000'].map(wholeNumber)).toEqual([1, 1e6, 1e20]);
  for (const text of ['0', '1.5', '-1', '', '9'.repeat(400)]) expect(() => wholeNumber(text)).toThrow(/at least 1/);
});

it('accepts whole numbers in a range, and names the range otherwise', () => {
  const latency = wholeNumberIn(300, 5000);
  expect(['300', '5000'].map(latency)).toEqual([300, 5000]);
  for (const text of ['299', '5001', '1e3', '500.5', '']) expect(() => latency(text)).toThrow(/from 300 to 5000/);
});
