import { expect, it } from 'vitest';
import { SentActivity } from './turn-events.ts';

it('keeps the labels of each sent frame, and drops old frames', () => {
  const sent = new SentActivity();
  sent.remember(10, 100);
  for (let frame = 0; frame < 10; frame++) sent.add(frame, 7);
  sent.add(4, 0);
  expect([sent.has(4, 0), sent.has(4, 7), sent.has(4, 1), sent.count(4)]).toEqual([true, true, false, 2]);
  expect([sent.isAlone(4, 7), sent.isAlone(5, 7), sent.isAlone(5, 0)]).toEqual([false, true, false]);
  sent.remember(105, 100);
  expect(sent.from).toBe(5);
  expect([sent.has(4, 7), sent.has(5, 7), sent.count(10)]).toEqual([false, true, 0]);
  const restored = new SentActivity();
  restored.restore(sent.save());
  expect(restored.count(9)).toBe(1);
  // Further ahead than the kept frames.
  sent.remember(1000, 100);
  expect([sent.from, sent.count(950)]).toEqual([900, 0]);
});
