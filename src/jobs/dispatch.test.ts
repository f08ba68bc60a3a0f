import { expect, it } from 'vitest';
import { dispatch, dispatchAll } from './dispatch.ts';
import type { JobPorts, Queued } from './ports.ts';

const MESSAGE = { step: 'webhook', jobId: 'job', attempt: 2 } as const;
const QUARTER_MS = 15 * 60_000;

/** What happens when messages are sent at 1000 ms, to be handled five minutes later. */
async function told(send: () => Promise<void>, messages = 1): Promise<string[]> {
  const steps: string[] = [];
  const queued = Array.from({ length: messages }, () => ({ message: MESSAGE, delaySeconds: 300 }));
  const ports = {
    store: {
      renewLease: async (id: string, until: number) => void steps.push(`${id} until ${until}`),
      renewLeases: async (leases: readonly { id: string; leaseUntil: number }[]) =>
        void steps.push(`${leases.length}: ${leases[0].id} until ${leases[0].leaseUntil}`),
    },
    queue: {
      send: async (message: { attempt: number }, delaySeconds: number) => {
        steps.push(`sent ${message.attempt} in ${delaySeconds}`);
        await send();
      },
      sendAll: async (batch: readonly Queued[]) => {
        steps.push(`sent ${batch.length} in ${batch[0].delaySeconds}`);
        await send();
      },
    },
    log: () => {},
    now: () => 1000,
  } as unknown as JobPorts;
  await (messages === 1 ? dispatch(ports, MESSAGE, 300) : dispatchAll(ports, queued));
  return steps;
}

it('a message is not taken for lost while it waits for its time and a quarter of an hour more', async () => {
  expect(await told(async () => {})).toEqual([`job/webhook until ${301_000 + QUARTER_MS}`, 'sent 2 in 300']);
});

it('a message that could not be sent is found by the next sweep, not after a quarter of an hour', async () => {
  const broken = async () => {
    throw new Error('the queue is away');
  };
  expect((await told(broken)).at(-1)).toBe('job/webhook until 301000');
});

it('many messages are leased and sent by the hundred', async () => {
  const leased = `job/webhook until ${301_000 + QUARTER_MS}`;
  expect(await told(async () => {}, 150)).toEqual([
    `100: ${leased}`,
    'sent 100 in 300',
    `50: ${leased}`,
    'sent 50 in 300',
  ]);
  const broken = async () => {
    throw new Error('the queue is away');
  };
  expect((await told(broken, 150)).filter((step) => step.endsWith('until 301000'))).toHaveLength(2);
});
