import { expect, it } from 'vitest';
import { StepBudget } from './container.ts';

const BYTES_PER_STEP = 32;

/** Steps of one length that a walk may take, at most half a million. */
function steps(bytes: number, packetsAt = (_: number) => 0, budget = new StepBudget(BYTES_PER_STEP, 0)): number {
  for (let step = 1; step <= 500_000; step++) if (!budget.spend(step * bytes, 1, packetsAt(step))) return step;
  return Number.POSITIVE_INFINITY;
}

it('a StepBudget ends after 200,000 short steps without a packet', () => {
  expect(steps(0)).toBe(200_000);
  expect(steps(2)).toBeLessThan(220_000);
});

it('a StepBudget does not end while long elements or packets follow', () => {
  expect(steps(BYTES_PER_STEP)).toBe(Number.POSITIVE_INFINITY);
  expect(steps(2, (step) => (step % 4 === 0 ? 1 : 0))).toBe(Number.POSITIVE_INFINITY);
});

it('a StepBudget does not accumulate steps above the limit', () => {
  const budget = new StepBudget(BYTES_PER_STEP, -(1 << 30));
  budget.spend(0, 1, 1000);
  expect(steps(0, undefined, budget)).toBe(200_000);
});
