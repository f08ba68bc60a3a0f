import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey, ensureAccount } from '../client/accounts.ts';
import { type RunSql, runSqlOn } from '../client/local/database.ts';
import { END_OF_STREAM, framesOf } from '../test/helpers/live-client.ts';
import { conversationSamples } from '../test/helpers/voices.ts';
import { startWorkers } from '../test/helpers/workerd.ts';
import type { TestedLiveStream } from '../test/workers/tested-objects.ts';

/** Live streams in workerd with the service's models, with and without `resume`. */

/** Frames are sent in real time. */
const FRAME_EVERY_MS = 100;

interface Message {
  readonly type: string;
  readonly token?: string;
  readonly frame?: number;
  readonly message?: string;
}

let worker: Awaited<ReturnType<typeof startWorkers>>;
let run: RunSql;
let key: string;
let objects: (name: string) => TestedLiveStream;
let frames: Uint8Array<ArrayBuffer>[];
beforeAll(async () => {
  worker = await startWorkers({ live: 'live-stream-front', hasModels: true, vars: { LIVE_CREDIT_SECONDS: '4' } });
  run = runSqlOn(worker.db);
  objects = await worker.objects<TestedLiveStream>('LIVE_STREAM');
  const accountId = await ensureAccount(run, { name: 'main', creditSeconds: 1000 }, 0);
  const { signingKey } = worker;
  key = (await createKey(run, { accountId, scopes: ['stream:write'], signingKey }, 0)).token;
  frames = framesOf((await conversationSamples()).subarray(0, 16_000 * 36)) as Uint8Array<ArrayBuffer>[];
});
afterAll(() => worker?.stop());

async function openStream(body: object = { resume: true }, token = key) {
  let answer = await worker.call('POST', '/v1/live', token, body);
  // On a busy machine the streams of the previous test may still lag.
  for (let tries = 0; answer.status === 503 && tries < 30; tries++) {
    await sleep(1000);
    answer = await worker.call('POST', '/v1/live', token, body);
  }
  if (answer.status !== 200) throw new Error(await answer.text());
  const { id, url } = (await answer.json()) as { id: string; url: string };
  const object = () => objects(id);
  const status = async () => (await run('SELECT status FROM live_streams WHERE id = ?', id))[0]!.status;
  const billed = () => run('SELECT billed_seconds FROM usage_records WHERE job_id = ?', id);
  const resumeUrl = (token: string) => Object.assign(new URL(url), { search: `?resume=${token}` }).href;
  return { url, object, status, billed, resumeUrl };
}

async function connect(url: string) {
  const received: Message[] = [];
  const socket = await worker.connect(url, (text) => received.push(JSON.parse(text)));
  const closed = new Promise<number>((done) => socket.addEventListener('close', ({ code }) => done(code)));
  const last = () => received.findLast(({ type }) => type === 'resume');
  return {
    socket,
    received,
    closed,
    last,
    turns: () => received.filter(({ type }) => type.startsWith('diarization')),
    async send(from: number, to: number) {
      for (const frame of frames.slice(from, to)) {
        if (socket.readyState === WebSocket.OPEN) socket.send(frame);
        await sleep(FRAME_EVERY_MS);
      }
    },
    /** Waits until the stream is kept after `frame` frames. @returns the resume token */
    async kept(frame: number) {
      await expect.poll(() => last()?.frame, { timeout: 120_000 }).toBe(frame);
      return last()!.token!;
    },
    async end() {
      socket.send(END_OF_STREAM);
      expect(await closed).toBe(1000);
    },
  };
}
type Connection = Awaited<ReturnType<typeof connect>>;

it('a stream with three drops, one with a reset, sends the same events and is billed once', {
  timeout: 180_000,
}, async () => {
  const plain = await openStream({});
  const continuous = await connect(plain.url);
  const ended = continuous.send(0, frames.length).then(() => continuous.end());
  const { url, object, status, billed, resumeUrl } = await openStream();
  let at = await connect(url);
  await expect.poll(() => at.received).toEqual([{ type: 'resume', token: expect.any(String), frame: 0 }]);
  const drops: [number, number, (at: Connection) => unknown][] = [
    [130, 100, ({ socket }) => socket.close()],
    [
      260,
      200,
      () =>
        object()
          .loseMemory()
          .catch(() => undefined),
    ],
    [345, 300, ({ socket }) => socket.close(1001)],
  ];
  const processed: Message[] = [];
  const repeated: Message[] = [];
  let next = 0;
  for (const [until, keptFrame, drop] of drops) {
    await at.send(next, until);
    const token = await at.kept(keptFrame);
    await drop(at);
    await sleep(300);
    expect(await status()).toBe('running');
    // Events after the last token are sent again.
    const lastToken = at.received.findLastIndex(({ type }) => type === 'resume');
    const isDiarization = ({ type }: Message) => type.startsWith('diarization');
    processed.push(...at.received.slice(0, lastToken).filter(isDiarization));
    repeated.push(...at.received.slice(lastToken).filter(isDiarization));
    await expect(connect(url)).rejects.toThrow('401');
    at = await connect(resumeUrl(token));
    await expect(connect(resumeUrl(token))).rejects.toThrow('401');
    await expect.poll(() => at.received.length).toBeGreaterThanOrEqual(2);
    expect(at.received.slice(0, 2)).toEqual([
      { type: 'resumed', frame: keptFrame },
      { type: 'resume', token: expect.any(String), frame: keptFrame },
    ]);
    next = keptFrame;
  }
  await at.send(next, frames.length);
  await Promise.all([at.end(), ended]);
  processed.push(...at.turns());
  expect(continuous.turns().length).toBeGreaterThan(6);
  expect(processed).toEqual(continuous.received);
  expect(repeated.length).toBeGreaterThan(0);
  expect(processed).toEqual(expect.arrayContaining(repeated));
  expect(await status()).toBe('done');
  expect(await billed()).toEqual([{ billed_seconds: frames.length / 10 }]);
  expect(await plain.billed()).toEqual([{ billed_seconds: frames.length / 10 }]);
});

it('accepts only the last token, and closes the previous connection if it is open', {
  timeout: 120_000,
}, async () => {
  const { url, resumeUrl, billed } = await openStream();
  const first = await connect(url);
  const oldest = await first.kept(0);
  await first.send(0, 110);
  const last = await first.kept(100);
  await expect(connect(resumeUrl(oldest))).rejects.toThrow('401');
  const second = await connect(resumeUrl(last));
  expect(await first.closed).toBe(1008);
  await second.send(100, 120);
  await second.end();
  expect(await billed()).toEqual([{ billed_seconds: 20 }]);
});

it('ends with 1008 when the credit is used up, and bills the received audio', {
  timeout: 120_000,
}, async () => {
  const accountId = await ensureAccount(run, { name: 'poor', creditSeconds: 20 }, 0);
  const { signingKey } = worker;
  const { token } = await createKey(run, { accountId, scopes: ['stream:write'], signingKey }, 0);
  const { url, status, billed } = await openStream({}, token);
  const at = await connect(url);
  await at.send(0, 210);
  expect(await at.closed).toBe(1008);
  expect(at.received.findLast(({ type }) => type === 'error')?.message).toContain('credit is used up');
  expect(await status()).toBe('done');
  const [bill] = (await billed()) as { billed_seconds: number }[];
  expect(bill!.billed_seconds).toBeGreaterThanOrEqual(20);
  expect(bill!.billed_seconds).toBeLessThan(22);
});

it('ends if it is not resumed: billed after a drop, unbilled after a fault of the service', {
  timeout: 120_000,
}, async () => {
  const run = async (isServiceFault: boolean) => {
    const { url, object, status, billed, resumeUrl } = await openStream();
    const at = await connect(url);
    await at.send(0, 210);
    const token = await at.kept(200);
    if (isServiceFault)
      await object()
        .loseMemory()
        .catch(() => undefined);
    else at.socket.close();
    await expect.poll(() => object().isConnected()).toBe(false);
    // No event reports the reset; the alarm discovers it.
    if (isServiceFault) await object().elapse(0);
    await object().elapse(50_000);
    expect(await status()).toBe('running');
    await object().elapse(10_000);
    await expect(connect(resumeUrl(token))).rejects.toThrow('401');
    return [await status(), await billed()];
  };
  expect(await Promise.all([run(false), run(true)])).toEqual([
    ['done', [{ billed_seconds: 21 }]],
    ['error', []],
  ]);
});
