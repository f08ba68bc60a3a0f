import { createRequire } from 'node:module';

// Miniflare with three repairs. All code that starts a runtime imports it from this file.
//
// A call of Miniflare's bindings that is not awaited (`prepare`, `bind`) waits with `Atomics.wait` for a thread that
// stores 1 and then notifies. If that thread is delayed between the two, its notification arrives during the next call,
// which ends without an answer; from then on every call of the process gets the answer of the previous one
// (cloudflare/workers-sdk pull request 15552, repaired in a release that Node 20 does not run).

/** Waits are cut into slices of this length, so that a runtime that does not answer is noticed. */
const SLICE_MS = 500;

interface WaitLimit {
  readonly limitMs: number;
  readonly onExceeded: () => void;
}
const limits = new Set<WaitLimit>();

/**
 * Limits how long a binding's call may block this process: a runtime that hangs would block it, and all timers,
 * forever.
 *
 * @param onExceeded ends the runtime that does not answer, so that the call fails
 * @returns ends the limit
 */
export function limitBlockingCalls(limitMs: number, onExceeded: () => void): () => void {
  const limit = { limitMs, onExceeded };
  limits.add(limit);
  return () => limits.delete(limit);
}

/** Makes waits for a single shared integer, without a timeout, end only when the integer has changed. */
function waitForChanges(): void {
  const { wait } = Atomics;
  Atomics.wait = (array: Int32Array | BigInt64Array, index: number, value: number | bigint, timeoutMs?: number) => {
    const once = (ms?: number) => wait(array as Int32Array, index, value as number, ms);
    if (array.length > 1 || timeoutMs !== undefined) return once(timeoutMs);
    // Counts slices instead of reading the clock, which also runs while the process is suspended.
    for (let waitedMs = 0; ; ) {
      const outcome = once(SLICE_MS);
      if (Atomics.load(array as Int32Array, index) !== value) return outcome === 'not-equal' ? outcome : 'ok';
      if (outcome !== 'timed-out') continue;
      for (const { limitMs, onExceeded } of limits) {
        if (waitedMs < limitMs && waitedMs + SLICE_MS >= limitMs) onExceeded();
      }
      waitedMs += SLICE_MS;
    }
  };
}

/** Smaller buffers grow in Miniflare's own steps. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Miniflare writes its configuration for workerd, all modules included, into one buffer. When the buffer is full, this
 * function copies it into one that is 4 KiB larger: with the 30 MB of this service's modules some two hundred times,
 * which takes three seconds. Growing the buffer by half leaves one or two copies.
 */
const GROWING_FUNCTION = /^Error.*\n.*\n *at \S*allocate\$1 /;

function growConfigurationInLargeSteps(): void {
  const OwnArrayBuffer = globalThis.ArrayBuffer;
  globalThis.ArrayBuffer = new Proxy(OwnArrayBuffer, {
    construct(target, [byteLength, ...rest], newTarget) {
      const isGrowing = byteLength > LARGE_BYTES && GROWING_FUNCTION.test(new Error().stack ?? '');
      // In words of 8 bytes.
      const granted = isGrowing ? Math.ceil((byteLength * 1.5) / 8) * 8 : byteLength;
      return Reflect.construct(target, [granted, ...rest], newTarget === globalThis.ArrayBuffer ? target : newTarget);
    },
  });
}

/**
 * V8 of workerd 1.20260730 can sweep its C++ heap forever after an object was reset (`ctx.abort()`): a task of the main
 * thread waits for the concurrent sweeper and posts itself again, so that workerd answers nothing and uses a whole core.
 * A garbage collection without other threads has no concurrent sweeper.
 */
function collectGarbageOnOneThread(): void {
  process.env.MINIFLARE_WORKERD_V8_FLAGS ??= '--single-threaded-gc';
}

waitForChanges();
growConfigurationInLargeSteps();
collectGarbageOnOneThread();

// `require`, because `import` takes half a second longer: Node would parse the module for its exports.
const miniflare = createRequire(import.meta.url)('miniflare') as typeof import('miniflare');
export const { fetch, Log, LogLevel, Miniflare } = miniflare;
export type Miniflare = import('miniflare').Miniflare;
export type { MiniflareOptions, WorkerOptions } from 'miniflare';
