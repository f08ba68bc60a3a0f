import { expect, it } from 'vitest';
import { withPulse } from './assemble.ts';

it('an output that takes long to be stored gives signs of life, and stops where the job has ended', async () => {
  let now = 0;
  let pulses = 0;
  const chunks = Array.from({ length: 100 }, (_, i) => String(i));
  const stored: string[] = [];
  const store = async (pulse: () => Promise<void>) => {
    for await (const chunk of withPulse(chunks, () => now, pulse)) {
      stored.push(chunk);
      now += 1000;
    }
  };
  await store(async () => {
    pulses++;
  });
  expect(stored).toEqual(chunks);
  expect(pulses).toBe(20);
  const gone = store(async () => {
    throw new Error('the job has ended');
  });
  await expect(gone).rejects.toThrow('the job has ended');
  expect(stored).toHaveLength(105);
});
