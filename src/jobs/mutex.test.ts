import { expect, it } from 'vitest';
import { Mutex, TurnLost } from './mutex.ts';

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
/** Never looks by itself: what comes, comes because the end of a turn wakes it. */
const never = () => new Promise<void>(() => undefined);
const soon = () => new Promise<void>((done) => setImmediate(done));

/** A turn that is held until it is let go. */
function held(mutex: Mutex, name: string, noted: string[], isUrgent = false) {
  let letGo = () => {};
  const isLetGo = new Promise<void>((done) => {
    letGo = done;
  });
  const turn = mutex.run({ sleep: never, isUrgent }, async () => {
    noted.push(name);
    await isLetGo;
  });
  return { turn, letGo };
}

it('gives turns one at a time and in order, and looks at nothing in between', async () => {
  const mutex = new Mutex();
  const noted: string[] = [];
  const turns = ['first', 'second', 'third'].map((name) => held(mutex, name, noted));
  for (const [n, { letGo, turn }] of turns.entries()) {
    await soon();
    expect(noted).toHaveLength(n + 1);
    letGo();
    await turn;
  }
  expect(noted).toEqual(['first', 'second', 'third']);
});

it('gives assemblies and short jobs their turn before the shards of long ones, which still come', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const turns = [held(mutex, 'running', noted)];
  await soon();
  for (let n = 0; n < 5; n++) turns.push(held(mutex, `shard ${n}`, noted));
  turns.push(held(mutex, 'assembly', noted, true));
  now = 15_000;
  turns.push(held(mutex, 'short', noted, true));
  for (const { letGo } of turns) letGo();
  await Promise.all(turns.map(({ turn }) => turn));
  expect(noted).toEqual(['running', 'assembly', 'short', 'shard 0', 'shard 1', 'shard 2', 'shard 3', 'shard 4']);
});

it('lets no urgent call overtake one that came a minute earlier: short jobs would starve long ones', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = held(mutex, 'running', noted);
  await soon();
  // They look, as the others do by their timers: they were not cut off.
  const waiting = ['shard', 'urgent'].map((name) => {
    now = name === 'shard' ? 0 : 61_000;
    return mutex.run({ sleep: soon, isUrgent: name === 'urgent' }, async () => void noted.push(name));
  });
  await soon();
  first.letGo();
  await Promise.all([first.turn, ...waiting]);
  expect(noted).toEqual(['running', 'shard', 'urgent']);
});

it('is free again after work that failed', async () => {
  const mutex = new Mutex();
  await expect(mutex.run({ sleep }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await mutex.run({ sleep }, async () => 'free')).toBe('free');
});

it('ends the turn of work without a sign of life for two minutes: the platform may have ended it', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  let goOn = () => {};
  const silent = mutex.run({ sleep }, async (beat) => {
    await new Promise<void>((done) => {
      goOn = done;
    });
    beat();
  });
  let looks = 0;
  const look = async () => {
    now = ++looks * 50_000;
  };
  const next = mutex.run({ sleep: look }, async (beat) => {
    goOn();
    await expect(silent).rejects.toBeInstanceOf(TurnLost);
    beat();
    return looks;
  });
  expect(await next).toBe(3);
  expect(await mutex.run({ sleep }, async () => 'free')).toBe('free');
});

it('a call that was cut off while it waited does not keep its place', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = held(mutex, 'running', noted);
  await soon();
  held(mutex, 'cut off', noted);
  // Nobody wakes it.
  const look = async () => {
    await soon();
    now += 5000;
  };
  const next = mutex.run({ sleep: look }, async () => void noted.push('next'));
  for (let i = 0; i < 8; i++) await soon();
  first.letGo();
  await Promise.all([first.turn, next]);
  expect(noted).toEqual(['running', 'next']);
});

it('work that gives signs of life keeps its turn', async () => {
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
