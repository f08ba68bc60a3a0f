import { expect, it } from 'vitest';
import { problemOf } from './problem.ts';

const detailsOf = (status: number, message: string) => problemOf({ kind: 'refused', status, message }).details;

it('advises to create a key with a missing scope only if the scope is missing', () => {
  expect(detailsOf(403, 'The API key lacks the scope live:write.')).toEqual([
    'Create a key with this scope: npm run key -- --account NAME --scopes …',
  ]);
  expect(detailsOf(403, 'Live streams are not enabled: the models in use are too slow for them.')).toEqual([]);
});

it('shows the name of a field once', () => {
  const fields = [
    { field: 'url', message: 'The address of the recording is not a valid URL.' },
    { field: 'numSpeakers', message: 'must be at least 1' },
  ];
  expect(problemOf({ kind: 'refused', status: 400, message: 'Invalid request', fields })).toEqual({
    message: 'Invalid request.',
    details: ['The address of the recording is not a valid URL.', 'numSpeakers must be at least 1.'],
  });
});
