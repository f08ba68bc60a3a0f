import { expect, it } from 'vitest';
import type { JobPorts, OutboxRow } from './ports.ts';
import { resendLost } from './resend.ts';

/** Jobs' messages, oldest lease first, as the database has them. */
function outbox(count: number) {
  const rows = Array.from(
    { length: count },
    (_, shard): OutboxRow => ({
      id: `job/shard/${shard}`,
      message: { step: 'shard', jobId: 'job', shard },
      dueAt: 0,
      leaseUntil: shard,
      starts: 0,
    }),
  );
  const sent: unknown[] = [];
  const ports = {
    store: {
      overdue: async (before: number, limit: number) =>
        rows
          .filter(({ leaseUntil }) => leaseUntil < before)
          .sort((a, b) => a.leaseUntil - b.leaseUntil)
          .slice(0, limit),
      renewLease: async (id: string, leaseUntil: number) => {
        const at = rows.findIndex((row) => row.id === id);
        rows[at] = { ...rows[at], leaseUntil };
      },
    },
    queue: { send: async (message: unknown) => void sent.push(message) },
    log: () => {},
    now: () => 1e6,
  } as unknown as JobPorts;
  return { ports, sent };
}

it('sends all messages after a restart: of more than two thousand the rest waited for the clock', async () => {
  const { ports, sent } = outbox(2500);
  expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(2500);
  expect(new Set(sent.map((message) => JSON.stringify(message))).size).toBe(2500);
});

it('sends what the clock finds in bounded portions', async () => {
  const { ports } = outbox(2500);
  expect(await resendLost(ports, 1e6)).toBe(2000);
  expect(await resendLost(ports, 1e6)).toBe(500);
});
