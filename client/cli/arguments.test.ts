import { expect, it } from 'vitest';
import { optionOfField, seconds } from './arguments.ts';

it('a refusal of the service names what a person wrote, not the field that became of it', () => {
  const fields = [
    'numSpeakers',
    'latency',
    'transcription',
    'turnLevelConfidence',
    'matching.threshold',
    'url',
    'metadata',
  ];
  expect(fields.map(optionOfField)).toEqual([
    '--num-speakers',
    '--latency',
    '--transcribe',
    '--turn-level-confidence',
    '--threshold',
    'url',
    'metadata',
  ]);
});

it('takes seconds as long as sums of them stay numbers: twice 1e308 was credit without end, shown as none', () => {
  expect(seconds('1e12')).toBe(1e12);
  for (const text of ['1e308', '-1', '', 'NaN']) expect(() => seconds(text)).toThrow(/from 0 to/);
});
