import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { fileIdOf } from '../formats/turn-text.ts';
import { createJobStore } from '../platform/d1/job-rows.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import type { JobSpec } from './app-services.ts';
import { createJob, detach } from './create-job.ts';

const NOW = 1_800_000_000_000;
let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
  await storage.db
    .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1000, 0)`)
    .run();
});
afterAll(() => storage?.stop());

it('creates no job without credit, even if the job of the same idempotency key was deleted', async () => {
  const store = createJobStore(storage.db);
  const objects = createObjectStore(storage.bucket);
  const queue = { send: async () => {}, sendAll: async () => {} };
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

it('returns a stored job even if renewing its lease fails', async () => {
  const store = createJobStore(storage.db);
  const objects = createObjectStore(storage.bucket);
  const sent: unknown[] = [];
  const queue = { send: async (message: unknown) => void sent.push(message), sendAll: async () => {} };
  const fail = async () => {
    throw new Error('D1_ERROR: overloaded');
  };
  const ports = { store: { ...store, renewLease: fail }, objects, queue, now: () => NOW, log: () => {} };
  const request = { url: 'https://example.com/a.wav', webhook: 'https://example.com/w', metadata: { a: 'b' } };
  const input = { kind: 'diarize', accountId: 'a', request: request as unknown as DiarizeRequest } as const;
  const created = await createJob(ports, input, 'stored');
  expect(sent).toEqual([{ step: 'ingest', jobId: 'stored' }]);
  expect(created).toEqual({ ok: true, value: await store.find('stored') });
});

it('returns a job whose row was written although the database reported an error', async () => {
  const lossy = Object.create(storage.db, {
    batch: {
      value: async (statements: D1PreparedStatement[]) => {
        await storage.db.batch(statements);
        throw new Error('D1_ERROR: Network connection lost.');
      },
    },
    prepare: { value: (sql: string) => storage.db.prepare(sql) },
  }) as D1Database;
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  const job = { kind: 'diarize', accountId: 'a', request, now: NOW } as const;
  const store = createJobStore(lossy);
  expect(await store.create({ ...job, id: 'lost' })).toMatchObject({ ok: true, value: { id: 'lost' } });
  const idempotency = { key: 'lossy', bodyHash: 'h' };
  expect(await store.create({ ...job, id: 'keyed', idempotency })).toMatchObject({ ok: true, value: { id: 'keyed' } });
});

it.each(['data:', 'DATA:', 'Data:'])('stores the audio of a %s URL as an attachment, not in the row', (scheme) => {
  const url = `${scheme}audio/wav;base64,UklGRg==`;
  const spec = { kind: 'voiceprint', request: { url } } as unknown as JobSpec;
  const { stored, attachments } = detach(spec, 'job');
  expect(stored.request.url).toBe('data:');
  expect(attachments.map(({ text }) => text)).toEqual([url]);
  expect(fileIdOf(url)).toBe('audio');
});
