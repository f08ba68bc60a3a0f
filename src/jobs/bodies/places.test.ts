import { expect, it } from 'vitest';
import { Places } from './places.ts';

const BOUNDS = { places: 2, perAccount: 1 };

/** Places with a clock that only waiting moves. */
function withClock(bounds = BOUNDS) {
  const clock = { ms: 0, at: new Map<number, () => void>() };
  const sleep = async (ms: number) => {
    clock.ms += ms;
    clock.at.get(clock.ms)?.();
  };
  return { clock, places: new Places(bounds, () => clock.ms, sleep) };
}

it('lets two in, and the third when one has been answered', async () => {
  const { clock, places } = withClock();
  const first = await places.take('a');
  expect(await places.take('b')).toBeDefined();
  expect(clock.ms).toBe(0);
  clock.at.set(500, () => first?.release());
  expect(await places.take('c')).toBeDefined();
  expect(clock.ms).toBe(500);
});

it('turns one down that has waited for 20 s', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  await places.take('b');
  expect(await places.take('c')).toBeUndefined();
  expect(clock.ms).toBe(20_000);
});

it('leaves a place to others when one account would have them all', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  expect(await places.take('a')).toBeUndefined();
  const waitedMs = clock.ms;
  expect(await places.take('b')).toBeDefined();
  expect(clock.ms).toBe(waitedMs);
});

it('frees the place of a request that was cut off, not one that is in use', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  const used = await places.take('b');
  clock.ms += 2 * 60_000;
  used?.renew();
  clock.ms += 60_000;
  expect(await places.take('c')).toBeDefined();
  expect(clock.ms).toBe(3 * 60_000);
  expect(await places.take('d')).toBeUndefined();
});

it('gives a place back once, however often it is told to', async () => {
  const { places } = withClock();
  const first = await places.take('a');
  first?.release();
  first?.release();
  await places.take('a');
  await places.take('b');
  expect(await places.take('c')).toBeUndefined();
});
