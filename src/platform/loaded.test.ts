import { expect, it } from 'vitest';
import { Loaded } from './loaded.ts';

it('loads once for concurrent callers', async () => {
  const loaded = new Loaded<number>();
  let loads = 0;
  const load = async () => {
    loads++;
    await new Promise((done) => setTimeout(done, 80));
    return 7;
  };
  expect(await Promise.all([loaded.get(load), loaded.get(load), loaded.get(load)])).toEqual([7, 7, 7]);
  expect(await loaded.get(load)).toBe(7);
  expect(loads).toBe(1);
});

it('keeps a value that is undefined', async () => {
  const loaded = new Loaded<undefined>();
  let loads = 0;
  for (let i = 0; i < 2; i++) await loaded.get(async () => void loads++);
  expect(loads).toBe(1);
});

it('loads again after a failure, also for the callers that waited', async () => {
  const loaded = new Loaded<string>();
  const failing = loaded.get(() => new Promise((_, fail) => setTimeout(() => fail(new Error('no model')), 20)));
  const waiting = loaded.get(async () => 'there');
  await expect(failing).rejects.toThrow('no model');
  expect(await waiting).toBe('there');
});

it('does not wait for a load that never ends', async () => {
  let now = 0;
  const loaded = new Loaded<string>(() => now);
  void loaded.get(() => new Promise(() => {}));
  now = 40_000;
  expect(await loaded.get(async () => 'there')).toBe('there');
});
