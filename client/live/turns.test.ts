import { expect, it } from 'vitest';
import { collectTurns } from './turns.ts';

it('pairs starts and ends of each speaker, sorted by start, then by speaker', () => {
  const event = (kind: 'start' | 'end', speaker: string, timestampSeconds: number) => ({
    kind,
    speaker,
    timestampSeconds,
  });
  const events = [
    event('start', 'B', 1),
    event('start', 'A', 1),
    event('end', 'B', 2),
    { kind: 'error', message: 'x' },
    event('start', 'B', 2.5),
    event('end', 'A', 3),
    event('end', 'C', 3),
  ];
  const told = [
    { speaker: 'A', start: 1, end: 3 },
    { speaker: 'B', start: 1, end: 2 },
  ];
  expect(collectTurns(events)).toEqual(told);
  expect(collectTurns(events, 4)).toEqual([...told, { speaker: 'B', start: 2.5, end: 4 }]);
});
