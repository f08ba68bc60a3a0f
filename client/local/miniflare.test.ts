import { Worker } from 'node:worker_threads';
import { afterEach, expect, it } from 'vitest';
import { limitBlockingCalls, Miniflare } from './miniflare.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it('answers each call of a binding with its own result despite late notifications of earlier calls', async () => {
  const runtime = new Miniflare({ modules: true, script: 'export default {}', d1Databases: ['DB'] });
  cleanups.push(() => runtime.dispose());
  const db = await runtime.getD1Database('DB');
  await notifyForever(handleOf(() => db.prepare('SELECT 0')));

  for (let round = 0; round < 20; round++) {
    expect(await db.prepare('SELECT ? AS round').bind(round).first('round')).toBe(round);
  }
});

it('reports a call that blocks for too long once', () => {
  const handle = new Int32Array(new SharedArrayBuffer(4));
  let exceeded = 0;
  cleanups.push(limitBlockingCalls(1000, () => exceeded++));
  // The call fails some time after its runtime was killed.
  cleanups.push(limitBlockingCalls(2000, () => Atomics.store(handle, 0, 1)));
  const startedAt = Date.now();
  Atomics.wait(handle, 0, 0);
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(1900);
  expect(exceeded).toBe(1);
});

/** Returns the integer on which a call waits. */
function handleOf(call: () => unknown): Int32Array {
  const { wait } = Atomics;
  let handle: Int32Array | undefined;
  Atomics.wait = (array: Int32Array | BigInt64Array, ...rest: [number, never, number?]) => {
    handle = array as Int32Array;
    return wait(handle, ...rest);
  };
  call();
  Atomics.wait = wait;
  if (!handle) throw new Error('the call did not wait');
  return handle;
}

/** Notifies repeatedly from another thread without changing the integer. */
async function notifyForever(handle: Int32Array): Promise<void> {
  const script = `const { workerData, parentPort } = require('node:worker_threads');
    parentPort.postMessage('here');
    for (;;) { Atomics.notify(workerData, 0); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.1); }`;
  const worker = new Worker(script, { eval: true, workerData: handle });
  cleanups.push(() => worker.terminate());
  await new Promise((here) => worker.once('message', here));
}

it('copies a large configuration at most three times', async () => {
  const { set } = Float64Array.prototype;
  const copied = { small: 0, large: 0 };
  Float64Array.prototype.set = function (source, offset) {
    copied[source.length > 512 * 1024 ? 'large' : 'small']++;
    return set.call(this, source, offset);
  };
  cleanups.push(() => (Float64Array.prototype.set = set));
  const modules = [
    { type: 'ESModule' as const, path: 'entry.js', contents: 'export default {}' },
    { type: 'Data' as const, path: 'large.bin', contents: new Uint8Array(8 * 1024 * 1024) },
  ];
  const runtime = new Miniflare({ modulesRoot: '/', modules, d1Databases: ['DB'] });
  cleanups.push(() => runtime.dispose());
  await runtime.ready;
  expect(copied.small).toBeGreaterThan(0);
  expect(copied.large).toBeLessThan(4);
});
