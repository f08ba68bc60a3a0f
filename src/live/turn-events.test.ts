import { expect, it } from 'vitest';
import { Told } from './turn-events.ts';

it('remembers who was told to talk, alone or with others, and forgets what is long past', () => {
  const told = new Told();
  told.remember(10, 100);
  for (let frame = 0; frame < 10; frame++) told.add(frame, 7);
  told.add(4, 0);
  expect([told.has(4, 0), told.has(4, 7), told.has(4, 1), told.count(4)]).toEqual([true, true, false, 2]);
  expect([told.isAlone(4, 7), told.isAlone(5, 7), told.isAlone(5, 0)]).toEqual([false, true, false]);
  told.remember(105, 100);
  expect(told.from).toBe(5);
  expect([told.has(4, 7), told.has(5, 7), told.count(10)]).toEqual([false, true, 0]);
  const restored = new Told();
  restored.restore(told.save());
  expect(restored.count(9)).toBe(1);
  // Further ahead than all that is remembered.
  told.remember(1000, 100);
  expect([told.from, told.count(950)]).toEqual([900, 0]);
});
