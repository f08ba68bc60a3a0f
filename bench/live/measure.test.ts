import { describe, expect, it } from 'vitest';
import type { LabelledRecording } from '../recordings.ts';
import { boundMinutes, capacityOf, delaysOf, eventDelays, joined, labelChanges, within } from './measure.ts';
import type { ObservedStream, TimedEvent } from './observe.ts';

const segment = (speaker: string, start: number, end: number) => ({
  speaker,
  startMicros: 1e6 * start,
  endMicros: 1e6 * end,
});
const eventOf = (
  kind: 'start' | 'end',
  speaker: number,
  timestampSeconds: number,
  streamSeconds: number,
): TimedEvent => ({
  kind,
  speaker,
  timestampSeconds,
  streamSeconds,
  push: Math.round(10 * streamSeconds) - 1,
  computeMs: 20,
});
const stream = (found: ObservedStream['found'], events: readonly TimedEvent[]): ObservedStream => ({
  audioSeconds: 20,
  found,
  corrected: found,
  events,
  pushMs: [],
  snapshotBytes: [],
});

describe('eventDelays', () => {
  it('measures from the moment in the audio until its event is returned, for the mapped speaker', () => {
    const reference = [segment('A', 1, 4), segment('B', 5, 8)];
    const found = [segment('1', 1.2, 4), segment('0', 5, 8)];
    const events = [
      eventOf('start', 1, 1.2, 2.5),
      eventOf('end', 1, 4, 5),
      eventOf('start', 0, 5, 6.5),
      eventOf('start', 1, 5, 6),
    ];
    const { delays, moments } = eventDelays(reference, stream(found, events));
    expect(moments).toBe(4);
    expect(delays.map(({ kind, audioMs }) => [kind, Math.round(audioMs)]).sort()).toEqual([
      ['end', 1000],
      ['start', 1500],
      ['start', 1500],
    ]);
  });

  it('matches an event once, with the closest moment at most a second away', () => {
    const reference = [segment('A', 1, 2), segment('A', 2.5, 3), segment('A', 10, 12)];
    const found = [segment('0', 2.4, 3), segment('0', 11.1, 12)];
    const events = [eventOf('start', 0, 2.4, 3.4), eventOf('start', 0, 11.1, 12)];
    const { delays } = eventDelays(reference, stream(found, events));
    expect(delays).toHaveLength(1);
    expect(delays[0].audioMs).toBeCloseTo(900);
  });

  it('joins touching segments of a speaker', () => {
    const reference = [segment('A', 1, 2), segment('A', 2, 3), segment('B', 2, 4)];
    expect(eventDelays(reference, stream([], [])).moments).toBe(4);
  });
});

describe('labelChanges', () => {
  it('counts turns whose majority label differs from that of the previous turn', () => {
    const reference = [
      segment('A', 0, 2),
      segment('B', 2, 4),
      segment('A', 4, 6),
      segment('A', 7, 8),
      segment('A', 9, 10),
    ];
    const found = [
      segment('0', 0, 2),
      segment('1', 2, 4),
      segment('0', 4, 4.5),
      segment('1', 4.5, 6),
      segment('1', 9, 10),
    ];
    expect(labelChanges(reference, found)).toEqual({ turns: 2, changes: 1 });
  });
});

describe('the queue', () => {
  const delays = [{ push: 1, kind: 'start' as const, audioMs: 500, computeMs: 40 }];

  it('adds computing and waiting to the delay of the audio', () => {
    expect(delaysOf({ pushMs: [0, 40], delays }, 1)).toEqual([540]);
    // Frames 50 ms apart: a push of 40 ms ends before the next frame arrives.
    expect(delaysOf({ pushMs: [0, 40], delays }, 2)).toEqual([540, 540]);
    expect(delaysOf({ pushMs: [70, 70], delays }, 2)).toEqual([590, 610]);
  });

  it('finds the number of streams before the delay doubles', () => {
    const pushMs = new Array<number>(1000).fill(30);
    const everySecond = Array.from({ length: 100 }, (_, at) => ({ ...delays[0], push: 10 * at }));
    const capacity = capacityOf({ pushMs, delays: everySecond });
    expect(capacity.streams).toBe(3); // three times 30 ms in 100 ms; the fourth makes the queue grow
    expect(capacity.p95AloneMs).toBe(530);
    expect(capacity.p95BeyondMs).toBeGreaterThan(1060);
  });
});

describe('the recordings', () => {
  const recording = (set: LabelledRecording['set'], name: string, seconds: number): LabelledRecording => ({
    set,
    name,
    path: '',
    samples: new Float32Array(16_000 * seconds).fill(seconds),
    reference: [segment('A', 0, seconds)],
  });
  const all = [recording('meetings', 'a', 60), recording('meetings', 'b', 60), recording('simulated', 'c', 60)];

  it('are bounded, with at least one of each folder', () => {
    expect(within(all, Number.POSITIVE_INFINITY)).toEqual(all);
    expect(within(all, 1).map(({ name }) => name)).toEqual(['a', 'c']);
    expect(boundMinutes('')).toBe(Number.POSITIVE_INFINITY);
    expect(() => boundMinutes('-1')).toThrow(/above 0/);
  });

  it('are joined up to the length, with speakers named after their recordings', () => {
    const { samples, reference, speakers } = joined(all.slice(1), 150);
    expect(samples).toHaveLength(16_000 * 150);
    expect(speakers).toBe(2);
    expect(reference).toEqual([
      segment('meetings/b/A', 0, 60),
      segment('simulated/c/A', 60, 120),
      segment('meetings/b/A', 120, 150),
    ]);
  });
});
