import { expect, it } from 'vitest';
import { Mutex, TurnLost } from './mutex.ts';

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

it('runs one piece of work at a time and lets waiting ones give up', async () => {
  const mutex = new Mutex();
  const noted: string[] = [];
  const first = mutex.run(
    async () => {},
    sleep,
    async () => {
      noted.push('first in');
      await sleep(250);
      noted.push('first out');
    },
  );
  const second = mutex.run(
    async () => {},
    sleep,
    async () => {
      noted.push('second in');
    },
  );
  const quitter = mutex.run(
    async () => {
      throw new Error('job gone');
    },
    sleep,
    async () => {
      noted.push('never');
    },
  );
  await expect(quitter).rejects.toThrow('job gone');
  await Promise.all([first, second]);
  expect(noted).toEqual(['first in', 'first out', 'second in']);
});

it('is free again after work that failed', async () => {
  const mutex = new Mutex();
  await expect(
    mutex.run(
      async () => {},
      sleep,
      () => Promise.reject(new Error('broken')),
    ),
  ).rejects.toThrow('broken');
  expect(
    await mutex.run(
      async () => {},
      sleep,
      async () => 'free',
    ),
  ).toBe('free');
});

it('work that is silent for two minutes loses its turn, as an invocation that the platform has ended would keep it for ever', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const idle = async () => {};
  let goOn = () => {};
  const silent = mutex.run(idle, sleep, async (pulse) => {
    await new Promise<void>((done) => {
      goOn = done;
    });
    await pulse();
  });
  let waited = 0;
  const next = mutex.run(
    async () => {
      now = ++waited * 50_000;
    },
    sleep,
    async (pulse) => {
      const looks = waited;
      goOn();
      await expect(silent).rejects.toBeInstanceOf(TurnLost);
      await pulse();
      return looks;
    },
  );
  expect(await next).toBe(3);
  expect(await mutex.run(idle, sleep, async () => 'free')).toBe('free');
});

it('work that gives signs of life keeps its turn', async () => {
  let now = 0;
  const mutex = new Mutex(() => now);
  const noted: string[] = [];
  const first = mutex.run(
    async () => {},
    sleep,
    async (pulse) => {
      for (let i = 0; i < 5; i++) {
        now += 100_000;
        await pulse();
        await sleep(120);
      }
      noted.push('first');
    },
  );
  const second = mutex.run(
    async () => {},
    sleep,
    async () => {
      noted.push('second');
    },
  );
  await Promise.all([first, second]);
  expect(noted).toEqual(['first', 'second']);
});
