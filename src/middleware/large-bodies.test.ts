import { expect, it } from 'vitest';
import { LargeBodies } from './large-bodies.ts';

/** Places with a clock that only waiting moves. */
function withClock() {
  const clock = { ms: 0 };
  const sleep = async (ms: number) => {
    clock.ms += ms;
  };
  return { clock, bodies: new LargeBodies(() => clock.ms, sleep) };
}

it('lets two in, and the third when one has been answered', async () => {
  const clock = { ms: 0 };
  let release = () => {};
  const bodies = new LargeBodies(
    () => clock.ms,
    async (ms) => {
      clock.ms += ms;
      if (clock.ms === 500) release();
    },
  );
  release = (await bodies.place())?.release ?? release;
  expect(await bodies.place()).toBeDefined();
  expect(clock.ms).toBe(0);
  expect(await bodies.place()).toBeDefined();
  expect(clock.ms).toBe(500);
});

it('turns one down that has waited for 20 s', async () => {
  const { clock, bodies } = withClock();
  await bodies.place();
  await bodies.place();
  expect(await bodies.place()).toBeUndefined();
  expect(clock.ms).toBe(20_000);
});

it('frees the place of a request that was cut off', async () => {
  const { clock, bodies } = withClock();
  await bodies.place();
  await bodies.place();
  clock.ms += 3 * 60_000;
  expect(await bodies.place()).toBeDefined();
  expect(clock.ms).toBe(3 * 60_000);
});

it('gives a place back once, however often it is told to', async () => {
  const { bodies } = withClock();
  const first = await bodies.place();
  first?.release();
  first?.release();
  await bodies.place();
  await bodies.place();
  expect(await bodies.place()).toBeUndefined();
});
