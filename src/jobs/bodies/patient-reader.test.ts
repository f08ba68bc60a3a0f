import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Patience, PatientReader, TooSlow } from './patient-reader.ts';

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
