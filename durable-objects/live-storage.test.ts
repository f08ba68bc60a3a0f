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

/** On the storage of real objects, in workerd. */
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
  // The binding's type does not say which class stands behind it.
  objects = (name) => namespace.get(namespace.idFromName(name)) as unknown as StreamObject;
});
afterAll(() => workerd?.dispose());

let made = 0;
/** The object of a stream that waits for its connection. */
async function waiting(): Promise<StreamObject> {
  const object = objects(`stream-${made++}`);
  await object.set(STREAM);
  return object;
}

/** The latest object, after the platform has taken it out of memory: the call that it is taken from fails. */
async function found(): Promise<StreamObject> {
  const name = `stream-${made - 1}`;
  await objects(name)
    .lose()
    .catch(() => undefined);
  return objects(name);
}

it('burns a token once, and none that has expired, also where the alarm comes late', async () => {
  const object = await waiting();
  expect(await object.burn(DIGEST, EXPIRES_AT)).toBeUndefined();
  expect(await object.burn(Uint8Array.of(1, 2, 4), EXPIRES_AT - 1)).toBeUndefined();
  const running = { name: 'running', startedAt: EXPIRES_AT - 1 };
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toMatchObject({ phase: running });
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  const again = await found();
  expect(await again.stream()).toMatchObject({ phase: running });
  expect(await again.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
});

it('burns the last token of a resume once, for a connection that was lost a moment ago', async () => {
  const object = await waiting();
  await object.allowResume(DIGEST);
  expect(await object.burnResume(DIGEST, 0)).toBeUndefined();
  await object.burn(DIGEST, 10);
  const [older, last] = [Uint8Array.of(4, 4, 4), Uint8Array.of(5, 5, 5)];
  for (const digest of [older, last]) await object.allowResume(digest);
  await object.drop(1000);
  const again = await found();
  expect(await again.burnResume(older, 999)).toBeUndefined();
  expect(await again.burnResume(last, 1000)).toBeUndefined();
  const resumed = { name: 'running', startedAt: 10, connection: 1 };
  expect((await again.burnResume(last, 999))?.phase).toEqual(resumed);
  expect(await again.burnResume(last, 999)).toBeUndefined();
  // That its connection is lost the object need not have heard.
  await again.allowResume(last);
  expect((await again.burnResume(last, 5000))?.phase).toEqual({ ...resumed, connection: 2 });
});

it('burns no token of a stream whose end is decided, though the database does not know yet', async () => {
  const object = await waiting();
  await object.end(STREAM, { status: 'error', receivedSeconds: 0 }, 1);
  expect(await object.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  expect(await object.stream()).toMatchObject({ phase: { name: 'ending' } });
});

it('keeps when a stream ended while the database is away: it had ended when that came back', async () => {
  const object = await waiting();
  const outcome = { status: 'done', receivedSeconds: 7 } as const;
  const decided = { name: 'ending', outcome, endedAt: 1000 };
  expect(await object.end(STREAM, outcome, 1000)).toEqual(decided);
  const ending = (await object.stream())!;
  expect(ending).toMatchObject({ phase: decided });
  expect(await object.end(ending, outcome, 90_000)).toEqual(decided);
  // Nor does another end take the place of the first.
  expect(await object.end(STREAM, { status: 'error', receivedSeconds: 0 }, 90_000)).toEqual(decided);
});

describe('a connection at rest', () => {
  const MIB = 1024 * 1024;

  it('is there again when its object was lost, however large its session: a value has at most 2 MB', async () => {
    const object = await waiting();
    expect(await object.rest()).toEqual({ hasUnsavedAudio: false });
    for (const bytes of [2.5 * MIB, 2 * MIB, 10, 0]) {
      const now = await found();
      await now.markUnsavedAudio();
      expect(await now.rest()).toMatchObject({ hasUnsavedAudio: true });
      await now.suspend(bytes + 7, bytes);
      expect(await (await found()).rest()).toEqual({
        hasUnsavedAudio: false,
        state: { receivedFrames: 5 },
        lastFrameAt: bytes + 7,
        bytes,
        isWhole: true,
      });
    }
  });

  it('leaves nothing of a longer session behind', async () => {
    const object = await waiting();
    const chunks = async () => (await object.left()).keys.filter((key) => key.startsWith('session/'));
    await object.suspend(7, 2.5 * MIB);
    expect(await chunks()).toHaveLength(2);
    await object.suspend(8, 10);
    expect(await chunks()).toHaveLength(1);
  });
});

it('leaves the alarm where the rest could not be erased, and nothing once that alarm has come', async () => {
  const object = await waiting();
  await object.setAlarm(Date.now() + 600_000);
  expect(await object.forgetInVain()).toContain('within a transaction');
  expect(await object.left()).toEqual({ keys: ['stream'], hasAlarm: true });
  await object.forget();
  expect(await object.left()).toEqual({ keys: [], hasAlarm: false });
});

it('looking at a stream that was never opened leaves no trace', async () => {
  const object = objects('never');
  expect(await object.stream()).toBeUndefined();
  expect(await object.burn(DIGEST, 0)).toBeUndefined();
  expect(await object.rest()).toEqual({ hasUnsavedAudio: false });
  expect(await object.left()).toEqual({ keys: [], hasAlarm: false });
});
