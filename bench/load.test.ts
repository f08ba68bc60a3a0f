import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { load, percentile, together } from './load.ts';

it('takes percentiles by nearest rank', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([0, 0.5, 0.99, 1].map((share) => percentile(values, share))).toEqual([1, 50, 99, 100]);
  expect(percentile([7], 0.99)).toBe(7);
  expect(() => percentile([], 0.5)).toThrow();
});

it('joins runs', () => {
  expect(
    together([
      { latenciesMs: [1, 2], seconds: 3 },
      { latenciesMs: [4], seconds: 5 },
    ]),
  ).toEqual({
    latenciesMs: [1, 2, 4],
    seconds: 8,
  });
});

async function withServer(listener: RequestListener, use: (origin: string) => Promise<void>): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

it('keeps as many requests in flight as there are clients, and times each to the end of its body', async () => {
  const delayMs = 50;
  let inFlight = 0;
  let most = 0;
  const slow: RequestListener = (_request, response) => {
    most = Math.max(most, ++inFlight);
    response.write('a');
    setTimeout(() => {
      inFlight--;
      response.end('b');
    }, delayMs);
  };
  await withServer(slow, async (origin) => {
    const { latenciesMs, seconds } = await load(origin, { method: 'GET', path: '/' }, { clients: 5, seconds: 0.5 });
    expect(most).toBe(5);
    expect(Math.min(...latenciesMs)).toBeGreaterThan(delayMs * 0.9);
    expect(latenciesMs.length).toBeLessThanOrEqual(Math.ceil((seconds * 1000) / (delayMs * 0.9)) * 5);
  });
});

it('repeats a request whose connection was closed, within the same measured time', async () => {
  let count = 0;
  const closing: RequestListener = (request, response) => {
    // As many as four: beyond one a client it is given up.
    if (++count < 40 && count % 10 === 5) request.socket.destroy();
    else response.end('ok');
  };
  await withServer(closing, async (origin) => {
    const { latenciesMs } = await load(origin, { method: 'GET', path: '/' }, { clients: 40, seconds: 0.3 });
    expect(count).toBeGreaterThan(latenciesMs.length);
  });
  await withServer(
    (request) => request.socket.destroy(),
    async (origin) => {
      await expect(load(origin, { method: 'GET', path: '/' }, { clients: 2, seconds: 1 })).rejects.toThrow();
    },
  );
});

it('fails for an answer that is not a success', async () => {
  const refusing: RequestListener = (_request, response) => response.writeHead(429).end('slower');
  await withServer(refusing, async (origin) => {
    const sent = load(origin, { method: 'POST', path: '/x', body: '{}' }, { clients: 2, seconds: 1 });
    await expect(sent).rejects.toThrow('POST /x answered 429: slower');
  });
});
