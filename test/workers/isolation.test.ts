import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey, ensureAccount } from '../../client/accounts.ts';
import { runSqlOn } from '../../client/local/database.ts';
import { END_OF_STREAM, framesOf, type Received, turnFaults } from '../helpers/live-client.ts';
import { conversationSamples } from '../helpers/voices.ts';
import { startWorkers } from '../helpers/workerd.ts';
import type { TestedJobProgress } from './tested-objects.ts';

/**
 * Breaks the isolate of batch jobs, as an exceeded memory limit would: every later call fails. Local workerd has no
 * memory limit that a test could exceed.
 */

/** Faster than real time, but slow enough for a busy machine. */
const FRAME_EVERY_MS = 60;

let workers: Awaited<ReturnType<typeof startWorkers>>;
beforeAll(async () => {
  workers = await startWorkers({ jobs: 'job-progress-front', hasModels: true });
});
afterAll(() => workers?.stop());

it('a live stream and requests continue while the isolate of batch jobs fails at every call', async () => {
  const { db, signingKey, call } = workers;
  const run = runSqlOn(db);
  const accountId = await ensureAccount(run, { name: 'main', subscribe: true }, 0);
  const { token } = await createKey(run, { accountId, scopes: ['stream:write', 'stream:read'], signingKey }, 0);
  const { id, url } = (await (await call('POST', '/v1/live', token)).json()) as { id: string; url: string };
  const socket = await workers.connect(url);
  const received: Received[] = [];
  socket.addEventListener('message', ({ data }) => received.push(JSON.parse(String(data)) as Received));
  const closed = new Promise<number>((done) => socket.addEventListener('close', ({ code }) => done(code)));
  const send = async (frames: readonly Uint8Array[]): Promise<void> => {
    for (const frame of frames) {
      socket.send(frame as Uint8Array<ArrayBuffer>);
      await sleep(FRAME_EVERY_MS);
    }
  };
  const starts = () => received.filter(({ type }) => type === 'diarization_speaker_start').length;

  const frames = framesOf((await conversationSamples()).subarray(0, 16_000 * 14));
  await send(frames.slice(0, 80));
  await expect.poll(starts, { timeout: 20_000 }).toBeGreaterThan(0);
  const object = await workers.objects<TestedJobProgress>('JOB_PROGRESS');
  await object('one').begin('one', 'tag');
  await object('one').breakIsolate();
  await expect(object('another').begin('another', 'tag')).rejects.toThrow();

  const before = starts();
  await send(frames.slice(80));
  await expect.poll(starts, { timeout: 20_000 }).toBeGreaterThan(before);
  socket.send(END_OF_STREAM);
  expect(await closed).toBe(1000);
  expect(turnFaults(received)).toEqual([]);
  const stream = await call('GET', `/v1/live/${id}`, token);
  expect(await stream.json()).toMatchObject({ status: 'done' });
  await expect(object('another').begin('another', 'tag')).rejects.toThrow();
}, 90_000);
