import { expect, it } from 'vitest';
import { optionOfField } from './arguments.ts';

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
