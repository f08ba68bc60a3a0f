import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Patience, PatientReader, Places, TooSlow } from './upload-bodies.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A body that sends so many bytes every so many milliseconds, so often, and then stops or ends. */
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

async function readAll(body: ReadableStream<Uint8Array>, patience: Patience): Promise<number | 'too slow'> {
  const reader = new PatientReader(body, patience);
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

it('reads what comes in time', async () => {
  const patience = { pauseMs: 15_000, totalMs: 60_000, minBytesPerMinute: 1000 };
  expect(await readAll(sender({ bytes: 100, everyMs: 1000, times: 50 }).body, patience)).toBe(5000);
});

it.each([
  ['stops', { ends: false }, { pauseMs: 15_000 }],
  ['takes too long for all of it', { times: 100 }, { pauseMs: 15_000, totalMs: 60_000 }],
  ['drips', { times: 1000 }, { pauseMs: 15_000, minBytesPerMinute: 1000 }],
])('gives a sender up that %s', async (_, how, patience) => {
  const { body, seen } = sender(how);
  expect(await readAll(body, patience)).toBe('too slow');
  expect(seen.cancelled).toBe(true);
});

it('does not count the time in which nobody reads, nor what came before a restart', async () => {
  const { body } = sender({ times: 50 });
  const reader = new PatientReader(body, { pauseMs: 15_000, totalMs: 60_000 });
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

const BOUNDS = { places: 2, perAccount: 1 };

/** Places with a clock that only waiting moves. */
function withClock(bounds = BOUNDS) {
  const clock = { ms: 0, at: new Map<number, () => void>() };
  const sleep = async (ms: number) => {
    clock.ms += ms;
    clock.at.get(clock.ms)?.();
  };
  return { clock, places: new Places(bounds, () => clock.ms, sleep) };
}

it('lets two in, and the third when one has been answered', async () => {
  const { clock, places } = withClock();
  const first = await places.take('a');
  expect(await places.take('b')).toBeDefined();
  expect(clock.ms).toBe(0);
  clock.at.set(500, () => first?.release());
  expect(await places.take('c')).toBeDefined();
  expect(clock.ms).toBe(500);
});

it('turns one down that has waited for 20 s', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  await places.take('b');
  expect(await places.take('c')).toBeUndefined();
  expect(clock.ms).toBe(20_000);
});

it('leaves a place to others when one account would have them all', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  expect(await places.take('a')).toBeUndefined();
  const waitedMs = clock.ms;
  expect(await places.take('b')).toBeDefined();
  expect(clock.ms).toBe(waitedMs);
});

it('frees the place of a request that was cut off, not one that is in use', async () => {
  const { clock, places } = withClock();
  await places.take('a');
  const used = await places.take('b');
  clock.ms += 2 * 60_000;
  used?.renew();
  clock.ms += 60_000;
  expect(await places.take('c')).toBeDefined();
  expect(clock.ms).toBe(3 * 60_000);
  expect(await places.take('d')).toBeUndefined();
});

it('gives a place back once, however often it is told to', async () => {
  const { places } = withClock();
  const first = await places.take('a');
  first?.release();
  first?.release();
  await places.take('a');
  await places.take('b');
  expect(await places.take('c')).toBeUndefined();
});
