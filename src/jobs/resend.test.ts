import { expect, it } from 'vitest';
import type { JobPorts, OutboxPosition, OutboxRow, Queued } from './ports.ts';
import { resendLost } from './resend.ts';

const order = (a: OutboxPosition, b: OutboxPosition) =>
  a.leaseUntil - b.leaseUntil || (a.id < b.id ? -1 : Number(a.id > b.id));

/** Jobs' messages, oldest lease first, as the database has them. */
function outbox(count: number, ...others: readonly OutboxRow[]) {
  const shards = Array.from(
    { length: count },
    (_, shard): OutboxRow => ({
      id: `job/shard/${shard}`,
      message: { step: 'shard', jobId: 'job', shard },
      dueAt: 0,
      leaseUntil: shard,
      starts: 0,
    }),
  );
  const rows = [...shards, ...others];
  const sent: unknown[] = [];
  const delays: number[] = [];
  const failed: string[] = [];
  let requests = 0;
  const ports = {
    store: {
      overdue: async (before: number, limit: number, { after }: { after?: OutboxPosition }) => {
        requests++;
        const found = rows
          .filter((row) => row.leaseUntil < before && (!after || order(after, row) < 0))
          .sort(order)
          .slice(0, limit);
        return { rows: found, next: found.length === limit ? found.at(-1) : undefined };
      },
      renewLeases: async (leases: readonly { id: string; leaseUntil: number }[]) => {
        requests++;
        for (const { id, leaseUntil } of leases) {
          const at = rows.findIndex((row) => row.id === id);
          rows[at] = { ...rows[at], leaseUntil };
        }
      },
      fail: async (jobId: string) => {
        failed.push(jobId);
        return false;
      },
    },
    queue: {
      sendAll: async (queued: readonly Queued[]) => {
        requests++;
        sent.push(...queued.map(({ message }) => message));
        delays.push(...queued.map(({ delaySeconds }) => delaySeconds));
      },
    },
    log: () => {},
    now: () => 1e6,
  } as unknown as JobPorts;
  return { ports, sent, delays, failed, requests: () => requests };
}

it('sends all messages after a restart: of more than two thousand the rest waited for the clock', async () => {
  const { ports, sent } = outbox(2500);
  expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(2500);
  expect(new Set(sent.map((message) => JSON.stringify(message))).size).toBe(2500);
});

it('sends what the clock finds in bounded portions, with far fewer requests than an invocation may make', async () => {
  const { ports, requests } = outbox(2500);
  expect(await resendLost(ports, 1e6)).toBe(2000);
  expect(requests()).toBeLessThanOrEqual(60);
  expect(await resendLost(ports, 1e6)).toBe(500);
});

it('sends a webhook whose turn is later than that of everything else after a restart', async () => {
  for (const count of [99, 100, 150, 250]) {
    const message = { step: 'webhook', jobId: 'other', attempt: 3 } as const;
    const dueAt = 1e6 + 299_000;
    const webhook = { id: 'other/webhook', message, dueAt, leaseUntil: dueAt + 900_000, starts: 0 };
    const { ports, sent } = outbox(count, webhook);
    expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(count + 1);
    expect(sent).toContainEqual(message);
  }
});

it('sends what is not due yet for when it is due: the last try of a webhook was made at once after a restart', async () => {
  const message = { step: 'webhook', jobId: 'other', attempt: 3 } as const;
  const webhook = { id: 'other/webhook', message, dueAt: 1e6 + 200_500, leaseUntil: 2e6, starts: 0 };
  const { ports, delays } = outbox(1, webhook);
  await resendLost(ports, Number.POSITIVE_INFINITY);
  expect(delays).toEqual([0, 201]);
});

it('fails the job of a step that was begun twenty times without an end, and sends it no more', async () => {
  const message = { step: 'shard', jobId: 'heavy', shard: 7 } as const;
  const [often, once] = [20, 19].map((starts) => ({
    id: `heavy/shard/${starts}`,
    message,
    dueAt: 0,
    leaseUntil: 0,
    starts,
  }));
  const { ports, sent, failed } = outbox(0, often!, once!);
  expect(await resendLost(ports, 1e6)).toBe(1);
  expect([sent, failed]).toEqual([[message], ['heavy']]);
});
