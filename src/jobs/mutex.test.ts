import { expect, it } from 'vitest';
import { Mutex, TurnLost } from './mutex.ts';

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
/** Never polls, so that only the end of a turn can wake the call. */
const never = () => new Promise<void>(() => undefined);
const soon = () => new Promise<void>((done) => setImmediate(done));

/** A call that keeps its turn until `release`. */
function held(mutex: Mutex, name: string, noted: string[], isUrgent = false) {
  let release = () => {};
  const released = new Promise<void>((done) => {
    release = done;
  });
  const turn = mutex.run({ sleep: never, isUrgent }, async () => {
    noted.push(name);
    await released;
  });
  return { turn, release };
}

it('gives turns one at a time and in order, without polling', async () => {
  const mutex = new Mutex();
  const noted: string[] = [];
  const turns = ['first', 'second', 'third'].map((name) => held(mutex, name, noted));
  for (const [n, { release, turn }] of turns.entries()) {
    await soon();
    expect(noted).toHaveLength(n + 1);
    release();
    await turn;
  }
  expect(noted).toEqual(['first', 'second', 'third']);
});

it('gives urgent calls their turn before shards of long jobs', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const turns = [held(mutex, 'running', noted)];
  await soon();
  for (let n = 0; n < 5; n++) turns.push(held(mutex, `shard ${n}`, noted));
  turns.push(held(mutex, 'assembly', noted, true));
  now = 15_000;
  turns.push(held(mutex, 'short', noted, true));
  for (const { release } of turns) release();
  await Promise.all(turns.map(({ turn }) => turn));
  expect(noted).toEqual(['running', 'assembly', 'short', 'shard 0', 'shard 1', 'shard 2', 'shard 3', 'shard 4']);
});

it('does not let an urgent call overtake one that came a minute earlier', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = held(mutex, 'running', noted);
  await soon();
  // They poll, so that they do not count as ended by the platform.
  const waiting = ['shard', 'urgent'].map((name) => {
    now = name === 'shard' ? 0 : 61_000;
    return mutex.run({ sleep: soon, isUrgent: name === 'urgent' }, async () => void noted.push(name));
  });
  await soon();
  first.release();
  await Promise.all([first.turn, ...waiting]);
  expect(noted).toEqual(['running', 'shard', 'urgent']);
});

it('is free again after work that failed', async () => {
  const mutex = new Mutex();
  await expect(mutex.run({ sleep }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await mutex.run({ sleep }, async () => 'free')).toBe('free');
});

it('ends a turn after two minutes without a sign of life', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  let resume = () => {};
  const silent = mutex.run({ sleep }, async (beat) => {
    await new Promise<void>((done) => {
      resume = done;
    });
    beat();
  });
  let polls = 0;
  const poll = async () => {
    now = ++polls * 50_000;
  };
  const next = mutex.run({ sleep: poll }, async (beat) => {
    resume();
    await expect(silent).rejects.toBeInstanceOf(TurnLost);
    beat();
    return polls;
  });
  expect(await next).toBe(3);
  expect(await mutex.run({ sleep }, async () => 'free')).toBe('free');
});

it('skips a waiting call that was ended by the platform', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = held(mutex, 'running', noted);
  await soon();
  held(mutex, 'cut off', noted);
  // No call wakes it.
  const poll = async () => {
    await soon();
    now += 5000;
  };
  const next = mutex.run({ sleep: poll }, async () => void noted.push('next'));
  for (let i = 0; i < 8; i++) await soon();
  first.release();
  await Promise.all([first.turn, next]);
  expect(noted).toEqual(['running', 'next']);
});

it('keeps the turn of work that gives signs of life', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = mutex.run({ sleep }, async (beat) => {
    for (let i = 0; i < 5; i++) {
      now += 100_000;
      beat();
      await sleep(20);
    }
    noted.push('first');
  });
  const second = mutex.run({ sleep: () => sleep(5) }, async () => {
    noted.push('second');
  });
  await Promise.all([first, second]);
  expect(noted).toEqual(['first', 'second']);
});
