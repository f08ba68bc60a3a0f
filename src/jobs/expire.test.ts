import { expect, it } from 'vitest';
import { expire } from './expire.ts';
import type { JobPorts } from './ports.ts';

it('a sweep deletes more outputs than a busy service makes in five minutes: it stopped at five thousand', async () => {
  const waiting = new Set(Array.from({ length: 20_000 }, (_, i) => `job-${i}`));
  const deleted = new Set<string>();
  const ports = {
    store: {
      expired: async (_before: number, limit: number) => [...waiting].slice(0, limit).map((id) => ({ id })),
      markCleaned: async (ids: readonly string[]) => {
        for (const id of ids) waiting.delete(id);
      },
      deleted: async () => [],
      expiredMedia: async () => [],
      expireIdempotencyKeys: async () => {},
    },
    objects: {
      deleteMany: async (keys: readonly string[]) => {
        for (const key of keys) deleted.add(key);
      },
      folders: async () => [],
      abortUploads: async () => 0,
    },
    log: () => {},
    now: () => 1e12,
    outputTtlMs: 1,
  } as unknown as JobPorts;
  await expire(ports);
  expect(waiting.size).toBe(0);
  expect(deleted.size).toBe(20_000);
});
