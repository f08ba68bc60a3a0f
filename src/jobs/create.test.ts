import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/database.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { createJobStore } from '../platform/d1/job-store.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { createJob } from './create.ts';

const NOW = 1_800_000_000_000;
let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
  await storage.db.prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => storage?.stop());

it('makes no job for an account that cannot pay, also when the job that its key stood for is deleted meanwhile', async () => {
  const store = createJobStore(storage.db);
  const objects = createObjectStore(storage.bucket);
  const queue = { send: async () => {} };
  const ports = { store, objects, queue, now: () => NOW, log: () => {} };
  const request = { url: 'https://example.com/a.wav', model: 'precision-2' } as DiarizeRequest;
  const input = { kind: 'diarize', accountId: 'a', request } as const;
  const idempotency = { key: 'k', bodyHash: 'h' };
  const replayOnly = { ...input, idempotency, isReplayOnly: true };
  const refused = { ok: false, error: { kind: 'payment_required' } };

  expect(await createJob(ports, replayOnly, 'none')).toEqual(refused);
  expect(await createJob(ports, { ...input, idempotency }, 'paid')).toMatchObject({ ok: true, value: { id: 'paid' } });
  expect(await createJob(ports, replayOnly, 'again')).toMatchObject({ ok: true, value: { id: 'paid' } });
  const other = { ...replayOnly, idempotency: { key: 'k', bodyHash: 'other' } };
  expect(await createJob(ports, other, 'again')).toEqual({ ok: false, error: { kind: 'idempotency_conflict' } });
  await store.remove('a', 'paid', NOW);
  expect(await createJob(ports, replayOnly, 'free')).toEqual(refused);
  expect(await store.find('free')).toBeUndefined();
});
