import { expect, it, vi } from 'vitest';
import { type StoredStream, StreamStorage } from './storage.ts';

declare global {
  interface SubtleCrypto {
    timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean;
  }
}

const EXPIRES_AT = 60_000;
const DIGEST = Uint8Array.of(1, 2, 3);

/** The storage of a stream that waits for its connection, in memory. */
function waiting(): StreamStorage {
  const kept = new Map<string, unknown>();
  const kv = { get: (key: string) => kept.get(key), put: (key: string, value: unknown) => kept.set(key, value) };
  const storage = new StreamStorage({ kv, transactionSync: (work: () => unknown) => work() } as never);
  storage.stream = {
    id: 'one',
    tokenDigest: DIGEST,
    phase: { name: 'waiting', expiresAt: EXPIRES_AT },
  } as StoredStream;
  return storage;
}

it('burns a token once, and none that has expired, also where the alarm comes late', () => {
  // Of workerd alone.
  vi.stubGlobal('crypto', { subtle: { timingSafeEqual: (a: Uint8Array, b: Uint8Array) => a.join() === b.join() } });
  const storage = waiting();
  expect(storage.burn(DIGEST, EXPIRES_AT)).toBeUndefined();
  expect(storage.burn(Uint8Array.of(1, 2, 4), EXPIRES_AT - 1)).toBeUndefined();
  expect(storage.burn(DIGEST, EXPIRES_AT - 1)).toMatchObject({ phase: { name: 'running', startedAt: EXPIRES_AT - 1 } });
  expect(storage.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  vi.unstubAllGlobals();
});

it('burns no token of a stream whose end is decided, though the database does not know yet', () => {
  const storage = waiting();
  storage.end(storage.stream!, { status: 'error', receivedSeconds: 0 }, 1);
  expect(storage.burn(DIGEST, EXPIRES_AT - 1)).toBeUndefined();
  expect(storage.stream).toMatchObject({ phase: { name: 'ending' } });
});

it('keeps when a stream ended while the database is away: it had ended when that came back', () => {
  const storage = waiting();
  const running = storage.stream!;
  const outcome = { status: 'done', receivedSeconds: 7 } as const;
  const decided = { name: 'ending', outcome, endedAt: 1000 };
  expect(storage.end(running, outcome, 1000)).toEqual(decided);
  expect(storage.stream).toMatchObject({ phase: decided });
  expect(storage.end(storage.stream!, outcome, 90_000)).toEqual(decided);
  // Nor does another end take the place of the first.
  expect(storage.end(running, { status: 'error', receivedSeconds: 0 }, 90_000)).toEqual(decided);
});
