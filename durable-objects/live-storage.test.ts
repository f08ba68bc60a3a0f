import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Miniflare } from '../client/local/miniflare.ts';
import { startTestWorker } from '../test/helpers/workerd.ts';
import type { StreamObject } from '../test/workers/stream-storage.worker.ts';
import type { StoredStream } from './live-storage.ts';

declare global {
  interface SubtleCrypto {
    timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean;
  }
}

/** Uses the storage of real objects in workerd. */
const EXPIRES_AT = 60_000;
const DIGEST = Uint8Array.of(1, 2, 3);
const STREAM = {
  id: 'one',
  tokenDigest: DIGEST,
  phase: { name: 'waiting', expiresAt: EXPIRES_AT },
} as StoredStream;

let workerd: Miniflare;
let objects: (name: string) => StreamObject;
beforeAll(async () => {
  workerd = await startTestWorker('stream-storage', {
    durableObjects: { STREAMS: { className: 'StreamObject', useSQLite: true } },
  });
  const namespace = await workerd.getDurableObjectNamespace('STREAMS');
  // The type of the binding does not name the class of its objects.
  objects = (name) => namespace.get(namespace.idFromName(name)) as unknown as StreamObject;
});
afterAll(() => workerd?.dispose());

let made = 0;
/** Creates the object of a stream that waits for its connection. */
async function createWaiting(): Promise<StreamObject> {
  const object = objects(`stream-${made++}`);
  await object.set(STREAM);
  return object;
}

/** Resets the latest object, which makes the call fail, and opens it again. */
async function reopen(): Promise<StreamObject> {
  const name = `stream-${made - 1}`;
  await objects(name)
    .lose()
    .catch(() => undefined);
  return objects(name);
}

it('burns a token once, and refuses an expired one even before the alarm', async () => {
  const object = await createWaiting();
  expect(await object.burn(DIGEST, EXPIRES_AT)).toBeUndefined();
  expect(await object.burn(Uint8Array.of(1, 2, 4), EXPIRES_AT - 1)).toBeUndefined();
  const running = { name: 'running', startedAt: EXPIRES_AT - 1 };
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toMatchObject({ phase: running });
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  const again = await reopen();
  expect(await again.stream()).toMatchObject({ phase: running });
  expect(await again.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
});

it('burns only the last resume token, once, and soon after the drop', async () => {
  const object = await createWaiting();
  await object.allowResume(DIGEST);
  expect(await object.burnResume(DIGEST, 0)).toBeUndefined();
  await object.burn(DIGEST, 10);
  const [older, last] = [Uint8Array.of(4, 4, 4), Uint8Array.of(5, 5, 5)];
  for (const digest of [older, last]) await object.allowResume(digest);
  await object.drop(1000);
  const again = await reopen();
  expect(await again.burnResume(older, 999)).toBeUndefined();
  expect(await again.burnResume(last, 1000)).toBeUndefined();
  const resumed = { name: 'running', startedAt: 10, connection: 1 };
  expect((await again.burnResume(last, 999))?.phase).toEqual(resumed);
  expect(await again.burnResume(last, 999)).toBeUndefined();
  // The object may not have noticed yet that its connection is lost.
  await again.allowResume(last);
  expect((await again.burnResume(last, 5000))?.phase).toEqual({ ...resumed, connection: 2 });
});

it('burns no token of a stream that is ending', async () => {
  const object = await createWaiting();
  await object.end(STREAM, { status: 'error', receivedSeconds: 0 }, 1);
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  expect(await object.stream()).toMatchObject({ phase: { name: 'ending' } });
});

it('keeps the time and outcome of the first end', async () => {
  const object = await createWaiting();
  const outcome = { status: 'done', receivedSeconds: 7 } as const;
  const decided = { name: 'ending', outcome, endedAt: 1000 };
  expect(await object.end(STREAM, outcome, 1000)).toEqual(decided);
  const ending = (await object.stream())!;
  expect(ending).toMatchObject({ phase: decided });
  expect(await object.end(ending, outcome, 90_000)).toEqual(decided);
  // A different later end does not replace the first one.
  expect(await object.end(STREAM, { status: 'error', receivedSeconds: 0 }, 90_000)).toEqual(decided);
});

describe('a suspended connection', () => {
  const MIB = 1024 * 1024;

  it('is restored after a reset, with a session beyond the 2 MB limit of a value', async () => {
    const object = await createWaiting();
    expect(await object.rest()).toEqual({ hasUnsavedAudio: false });
    for (const bytes of [2.5 * MIB, 2 * MIB, 10, 0]) {
      const now = await reopen();
      await now.markUnsavedAudio();
      expect(await now.rest()).toMatchObject({ hasUnsavedAudio: true });
      await now.suspend(bytes + 7, bytes);
      expect(await (await reopen()).rest()).toEqual({
        hasUnsavedAudio: false,
        state: { receivedFrames: 5 },
        lastFrameAt: bytes + 7,
        bytes,
        isWhole: true,
      });
    }
  });

  it('deletes the chunks of an earlier, longer session', async () => {
    const object = await createWaiting();
    const chunks = async () => (await object.left()).keys.filter((key) => key.startsWith('session/'));
    await object.suspend(7, 2.5 * MIB);
    expect(await chunks()).toHaveLength(2);
    await object.suspend(8, 10);
    expect(await chunks()).toHaveLength(1);
  });
});

it('keeps the alarm if erasing fails, and erases everything at the next try', async () => {
  const object = await createWaiting();
  await object.setAlarm(Date.now() + 600_000);
  expect(await object.forgetInVain()).toContain('within a transaction');
  expect(await object.left()).toEqual({ keys: ['stream'], hasAlarm: true });
  await object.forget();
  expect(await object.left()).toEqual({ keys: [], hasAlarm: false });
});

it('stores nothing for a stream that was never created', async () => {
  const object = objects('never');
  expect(await object.stream()).toBeUndefined();
  expect(await object.burn(DIGEST, 0)).toBeUndefined();
  expect(await object.rest()).toEqual({ hasUnsavedAudio: false });
  expect(await object.left()).toEqual({ keys: [], hasAlarm: false });
});
