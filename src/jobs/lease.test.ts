import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { spoolKey } from './keys.ts';
import { JobGone, keepingLease, keepLease } from './lease.ts';
import type { JobPorts } from './ports.ts';

/** On a real database, with a real server that is slow. The ten seconds between renewals are told by hand, all else goes by the machine's clock. */
const world = useJobs();
/** A busy machine takes its time. */
const SOON = { timeout: 10_000 };
let server: TestServer;
let handler: Handler;
/** The leases that have been set. */
let leases: number[];
let ports: JobPorts;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
});
afterAll(() => server?.close());
beforeEach(async () => {
  await world.running({ shards: [{ startSample: 0, endSample: 1 }] });
  leases = [];
  const { store } = world.ports;
  ports = world.withStore({
    renewLease: async (id, until) => {
      await store.renewLease(id, until);
      leases.push(until);
    },
  });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function pass(ms: number): void {
  world.now += ms;
  vi.advanceTimersByTime(ms);
}
const message = () => `${world.id}/shard/0`;
const end = (how: string) =>
  how === 'deleted'
    ? world.ports.store.remove(world.accountId, world.id, world.now)
    : world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);

/** A source whose server has been asked and does not answer until it is told to, read for the job. */
async function stalled() {
  let asked: (response: ServerResponse) => void;
  const waiting = new Promise<ServerResponse>((done) => {
    asked = done;
  });
  handler = (_request, response) => asked(response);
  const opened = ports.sources.open({ kind: 'http', url: `${server.origin}/a.wav`, validator: '"1"', sizeBytes: 10 });
  const close = vi.fn(() => opened.close?.());
  const { sizeBytes } = opened;
  const read = (offset: number, length: number) => opened.read(offset, length);
  const source = keepingLease(ports, world.id, message(), { sizeBytes, read, close });
  const reading = source.read(0, 10);
  reading.catch(() => undefined);
  const response = await waiting;
  return { source, reading, response, close };
}

it('the lease of a step does not run out while its source stalls: the step was sent again beside itself', async () => {
  const { source, reading, response, close } = await stalled();
  const expected: number[] = [];
  for (let renewals = 1; renewals <= 9; renewals++) {
    pass(10_000);
    expected.push(NOW + renewals * 10_000 + 60_000);
    await expect.poll(() => leases, SOON).toEqual(expected);
    expect(await world.row('shard/0')).toMatchObject({ leaseUntil: expected.at(-1) });
  }
  response.writeHead(206, { ETag: '"1"', 'Content-Range': 'bytes 0-9/10' }).end(new Uint8Array(10));
  expect(await reading).toHaveLength(10);
  expect(vi.getTimerCount()).toBe(0);
  pass(100_000);
  expect(await world.row('shard/0')).toMatchObject({ leaseUntil: expected.at(-1) });
  expect(leases).toEqual(expected);
  source.close?.();
  expect(close).toHaveBeenCalledTimes(1);
});

it('work whose job was canceled is told that nobody waits for it: a download went on to its end', async () => {
  let isDropped = false;
  handler = (_request, response) => {
    const drip = () => {
      if (response.destroyed) return;
      response.write(new Uint8Array(10));
      setTimeout(drip, 5);
    };
    response.on('close', () => {
      isDropped = true;
    });
    drip();
  };
  const signals: AbortSignal[] = [];
  let download: Promise<unknown> | undefined;
  const work = keepLease(ports, world.id, message(), (signal) => {
    signals.push(signal);
    download = ports.sources.resolve(`${server.origin}/a.wav`, spoolKey(world.id), { maxBytes: 1e9, signal });
    return download;
  }).catch((error: unknown) => error);
  pass(10_000);
  await expect.poll(() => leases, SOON).toEqual([NOW + 70_000]);
  expect([signals[0]?.aborted, isDropped]).toEqual([false, false]);
  await end('canceled');
  pass(10_000);
  expect(await work).toBeInstanceOf(JobGone);
  expect(signals[0]?.aborted).toBe(true);
  expect(await download).toMatchObject({ ok: false, error: { kind: 'gone' } });
  await expect.poll(() => isDropped, SOON).toBe(true);
});

it.each(['canceled', 'deleted'])('a read ends soon after its job was %s', async (how) => {
  const { reading, response } = await stalled();
  await end(how);
  pass(10_000);
  await expect(reading).rejects.toBeInstanceOf(JobGone);
  expect(leases).toEqual([]);
  response.destroy();
});
