import { expect, it } from 'vitest';
import { collectTurns, type SpeakerChange, TurnCollector } from './turns.ts';

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
  const turns = [
    { speaker: 'A', start: 1, end: 3 },
    { speaker: 'B', start: 1, end: 2 },
  ];
  expect(collectTurns(events)).toEqual(turns);
  expect(collectTurns(events, 4)).toEqual([...turns, { speaker: 'B', start: 2.5, end: 4 }]);
});

const turn = (speaker: string, start: number, end: number) => ({ speaker, start, end });
const eventsOf = (...turns: ReturnType<typeof turn>[]) =>
  turns.flatMap(({ speaker, start, end }) => [
    { kind: 'start', speaker, timestampSeconds: start },
    { kind: 'end', speaker, timestampSeconds: end },
  ]);
const correction = (...changes: [number, number, string, string][]) => ({
  kind: 'correction',
  changes: changes.map(([startSeconds, endSeconds, from, to]) => ({ startSeconds, endSeconds, from, to })),
});

it('applies corrections to earlier turns', () => {
  const first = eventsOf(turn('A', 0, 4), turn('B', 5, 6), turn('A', 7, 8));
  const later = eventsOf(turn('A', 9, 10));
  expect(collectTurns([...first, correction([1, 3, 'A', 'C'], [7, 8, 'A', 'B']), ...later])).toEqual([
    turn('A', 0, 1),
    turn('C', 1, 3),
    turn('A', 3, 4),
    turn('B', 5, 6),
    turn('B', 7, 8),
    turn('A', 9, 10),
  ]);
});

it('applies the changes of one correction at once, and those of the next one to the result', () => {
  const first = eventsOf(turn('A', 0, 2), turn('B', 3, 5));
  const swapped = correction([0, 5, 'A', 'B'], [0, 5, 'B', 'A']);
  expect(collectTurns([...first, swapped])).toEqual([turn('B', 0, 2), turn('A', 3, 5)]);
  expect(collectTurns([...first, swapped, correction([0, 2, 'B', 'A'])])).toEqual([turn('A', 0, 2), turn('A', 3, 5)]);
});

it('corrects the beginning of a turn that is still open', () => {
  const open = { kind: 'start', speaker: 'A', timestampSeconds: 1 };
  const end = { kind: 'end', speaker: 'A', timestampSeconds: 9 };
  expect(collectTurns([open, correction([1, 4, 'A', 'B']), end])).toEqual([turn('B', 1, 4), turn('A', 4, 9)]);
});

it('joins turns that touch or overlap after corrections', () => {
  const first = eventsOf(turn('A', 0, 2), turn('B', 1, 3), turn('B', 4, 5));
  expect(collectTurns([...first, correction([1, 3, 'B', 'A'])])).toEqual([turn('A', 0, 3), turn('B', 4, 5)]);
});

it('applies each event of five hours of talk once, also with frequent calls of `turns`', () => {
  const SECONDS = 5 * 3600;
  const name = (index: number) => `SPEAKER_0${index % 4}`;
  const events: { kind: string; speaker?: string; timestampSeconds?: number; changes?: SpeakerChange<string>[] }[] = [];
  for (let [at, index] = [0, 0]; at < SECONDS; at += 2.5, index++) {
    events.push({ kind: 'start', speaker: name(index), timestampSeconds: at });
    events.push({ kind: 'end', speaker: name(index), timestampSeconds: at + 2.6 });
    if (index % 6 === 5) {
      const spans = [20, 60, 100].map((before) => Math.max(0, at - before));
      events.push(
        correction(...spans.map((from, i): [number, number, string, string] => [from, from + 3, name(i), name(i + 1)])),
      );
    }
  }
  let reads = 0;
  const counted = events.map((event) => ({
    ...event,
    get kind() {
      reads++;
      return event.kind;
    },
  }));
  const collector = new TurnCollector<string>();
  const untilSeconds = (index: number) => 2.5 * Math.ceil(index / 2);
  counted.forEach((event, index) => {
    collector.add(event);
    if (index % 100 === 0) collector.turns(untilSeconds(index));
    if (index === 700 || index === 1400) {
      const before = reads;
      expect(collector.turns(untilSeconds(index))).toEqual(
        collectTurns(events.slice(0, index + 1), untilSeconds(index)),
      );
      expect(reads).toBe(before);
    }
  });
  expect(reads).toBe(events.length);
  expect(collector.turns(SECONDS)).toEqual(collectTurns(events, SECONDS));
});

it('keeps turns that a correction does not concern', () => {
  const collector = new TurnCollector<string>();
  for (const event of eventsOf(turn('A', 0, 2), turn('B', 3, 5), turn('A', 6, 8))) collector.add(event);
  const before = collector.turns();
  collector.add(correction([3, 4, 'B', 'C'], [6, 7, 'B', 'C']));
  const after = collector.turns();
  expect(after).toEqual([before[0], turn('C', 3, 4), turn('B', 4, 5), before[2]]);
  expect(after[0]).toBe(before[0]);
  expect(after[3]).toBe(before[2]);
});
