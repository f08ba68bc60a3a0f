import { expect, it } from 'vitest';
import { problemOf } from './problem.ts';

const detailsOf = (status: number, message: string) => problemOf({ kind: 'refused', status, message }).details;

it('tells how to make a key with a scope where one is lacking, and not where nothing of the kind helps', () => {
  expect(detailsOf(403, 'The API key lacks the scope live:write.')).toEqual([
    'Make a key that has it: npm run key -- --account NAME --scopes …',
  ]);
  expect(detailsOf(403, 'Live streams are not enabled: the models in use are too slow for them.')).toEqual([]);
});

it('says the name of a field once', () => {
  const fields = [
    { field: 'url', message: 'The address of the recording is not a valid URL.' },
    { field: 'numSpeakers', message: 'must be at least 1' },
  ];
  expect(problemOf({ kind: 'refused', status: 400, message: 'Invalid request', fields })).toEqual({
    message: 'Invalid request.',
    details: ['The address of the recording is not a valid URL.', 'numSpeakers must be at least 1.'],
  });
});
