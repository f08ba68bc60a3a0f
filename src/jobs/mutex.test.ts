import { expect, it } from 'vitest';
import { Mutex } from './mutex.ts';

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
