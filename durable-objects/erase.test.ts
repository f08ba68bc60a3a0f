import { expect, it } from 'vitest';
import { erase } from './erase.ts';

it('leaves the alarm where it could not erase the rest, and nothing once that alarm has come', async () => {
  const kept = new Set(['stream', 'alarm']);
  let failures = 1;
  const storage = {
    deleteAlarm: async () => void kept.delete('alarm'),
    deleteAll: async () => {
      if (failures-- > 0) throw new Error('the storage is busy');
      kept.delete('stream');
    },
  };
  await expect(erase(storage)).rejects.toThrow('busy');
  expect([...kept]).toEqual(['stream', 'alarm']);
  await erase(storage);
  expect([...kept]).toEqual([]);
});
