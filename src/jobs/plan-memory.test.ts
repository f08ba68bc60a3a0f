import { expect, it } from 'vitest';
import { PlanMemory } from './plan-memory.ts';
import type { JobPlan } from './ports.ts';

const planOf = (totalSamples: number) => ({ totalSamples }) as JobPlan;

it('keeps the plan read last, and no other', async () => {
  const memory = new PlanMemory();
  const read: string[] = [];
  const get = (key: string) =>
    memory.get(key, async () => {
      read.push(key);
      return planOf(read.length);
    });
  expect([await get('a'), await get('a'), await get('b'), await get('a')]).toEqual([1, 1, 2, 3].map(planOf));
  expect(read).toEqual(['a', 'b', 'a']);
});

it('keeps nothing of a plan that could not be read', async () => {
  const memory = new PlanMemory();
  await expect(memory.get('a', () => Promise.reject(new Error('no plan')))).rejects.toThrow('no plan');
  expect(await memory.get('a', async () => planOf(1))).toEqual(planOf(1));
});
