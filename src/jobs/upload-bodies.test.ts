import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LimitedReader, type ReadLimits, Slots, TooSlow } from './upload-bodies.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A body that sends `bytes` every `everyMs`, `times` times, and then ends or stalls. */
function sender({ bytes = 1, everyMs = 1000, times = 1, ends = true } = {}) {
  const seen = { cancelled: false };
  let timer: ReturnType<typeof setInterval>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      let sent = 0;
      timer = setInterval(() => {
        if (sent++ < times) controller.enqueue(new Uint8Array(bytes));
        else if (ends) {
          clearInterval(timer);
          controller.close();
        }
      }, everyMs);
    },
    cancel() {
      seen.cancelled = true;
      clearInterval(timer);
    },
  });
  return { body, seen };
}

async function readAll(body: ReadableStream<Uint8Array>, limits: ReadLimits): Promise<number | 'too slow'> {
  const reader = new LimitedReader(body, limits);
  let bytes = 0;
  const done = (async () => {
    try {
      for (let chunk = await reader.read(); chunk; chunk = await reader.read()) bytes += chunk.length;
      return bytes;
    } catch (error) {
      if (error instanceof TooSlow) return 'too slow';
      throw error;
    } finally {
      reader.close();
    }
  })();
  await vi.advanceTimersByTimeAsync(600_000);
  return done;
}

it('reads a body that arrives in time', async () => {
  const limits = { pauseMs: 15_000, totalMs: 60_000, minBytesPerMinute: 1000 };
  expect(await readAll(sender({ bytes: 100, everyMs: 1000, times: 50 }).body, limits)).toBe(5000);
});

it.each([
  ['stalls', { ends: false }, { pauseMs: 15_000 }],
  ['exceeds the total time', { times: 100 }, { pauseMs: 15_000, totalMs: 60_000 }],
  ['sends too few bytes per minute', { times: 1000 }, { pauseMs: 15_000, minBytesPerMinute: 1000 }],
])('cancels the body of a sender that %s', async (_, how, limits) => {
  const { body, seen } = sender(how);
  expect(await readAll(body, limits)).toBe('too slow');
  expect(seen.cancelled).toBe(true);
});

it('counts neither the time between reads nor the time before a restart', async () => {
  const { body } = sender({ times: 50 });
  const reader = new LimitedReader(body, { pauseMs: 15_000, totalMs: 60_000 });
  const readFor = async (chunks: number) => {
    for (let i = 0; i < chunks; i++) {
      const chunk = reader.read();
      await vi.advanceTimersByTimeAsync(1000);
      expect((await chunk)?.length).toBe(1);
    }
  };
  await readFor(10);
  await vi.advanceTimersByTimeAsync(20_000);
  await readFor(20);
  reader.restart();
  await readFor(20);
  reader.close();
});

const BOUNDS = { slots: 2, perAccount: 1 };

/** Slots with a clock that only waiting advances. */
function withClock(bounds = BOUNDS) {
  const clock = { ms: 0, at: new Map<number, () => void>() };
  const sleep = async (ms: number) => {
    clock.ms += ms;
    clock.at.get(clock.ms)?.();
  };
  return { clock, slots: new Slots(bounds, () => clock.ms, sleep) };
}

it('gives the third request a slot when one is released', async () => {
  const { clock, slots } = withClock();
  const first = await slots.take('a');
  expect(await slots.take('b')).toBeDefined();
  expect(clock.ms).toBe(0);
  clock.at.set(500, () => first?.release());
  expect(await slots.take('c')).toBeDefined();
  expect(clock.ms).toBe(500);
});

it('refuses a request that has waited for 20 s', async () => {
  const { clock, slots } = withClock();
  await slots.take('a');
  await slots.take('b');
  expect(await slots.take('c')).toBeUndefined();
  expect(clock.ms).toBe(20_000);
});

it('keeps a slot free for other accounts', async () => {
  const { clock, slots } = withClock();
  await slots.take('a');
  expect(await slots.take('a')).toBeUndefined();
  const waitedMs = clock.ms;
  expect(await slots.take('b')).toBeDefined();
  expect(clock.ms).toBe(waitedMs);
});

it('frees the slot of an aborted request, not one that is in use', async () => {
  const { clock, slots } = withClock();
  await slots.take('a');
  const used = await slots.take('b');
  clock.ms += 2 * 60_000;
  used?.renew();
  clock.ms += 60_000;
  expect(await slots.take('c')).toBeDefined();
  expect(clock.ms).toBe(3 * 60_000);
  expect(await slots.take('d')).toBeUndefined();
});

it('frees a slot only once if `release` is called twice', async () => {
  const { slots } = withClock();
  const first = await slots.take('a');
  first?.release();
  first?.release();
  await slots.take('a');
  await slots.take('b');
  expect(await slots.take('c')).toBeUndefined();
});
