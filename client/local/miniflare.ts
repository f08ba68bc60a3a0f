import { createRequire } from 'node:module';

// Miniflare with three fixes. All code that starts a runtime imports it from this file.
//
// A call of Miniflare's bindings that is not awaited (`prepare`, `bind`) waits with `Atomics.wait` for a thread that
// stores 1 and then notifies. If that thread is delayed between the two, its notification arrives during the next call.
// That call ends without an answer, and every later call of the process gets the answer of the previous one
// (cloudflare/workers-sdk pull request 15552, fixed in a release that does not support Node 20).

/** Length of the slices into which waits are cut, so that an unresponsive runtime is detected. */
const SLICE_MS = 500;

interface WaitLimit {
  readonly limitMs: number;
  readonly onExceeded: () => void;
}
const limits = new Set<WaitLimit>();

/**
 * Limits how long a call of a binding may block this process. A runtime that hangs would block it, and all its timers,
 * forever.
 *
 * @param onExceeded ends the runtime that does not answer, so that the call fails
 * @returns a function that removes the limit
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
    const waitOnce = (ms?: number) => wait(array as Int32Array, index, value as number, ms);
    if (array.length > 1 || timeoutMs !== undefined) return waitOnce(timeoutMs);
    // Counts slices instead of reading the clock, because the clock also runs while the process is suspended.
    for (let waitedMs = 0; ; ) {
      const outcome = waitOnce(SLICE_MS);
      if (Atomics.load(array as Int32Array, index) !== value) return outcome === 'not-equal' ? outcome : 'ok';
      if (outcome !== 'timed-out') continue;
      for (const { limitMs, onExceeded } of limits) {
        if (waitedMs < limitMs && waitedMs + SLICE_MS >= limitMs) onExceeded();
      }
      waitedMs += SLICE_MS;
    }
  };
}

/** Smaller buffers grow in Miniflare's steps. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Miniflare writes its configuration for workerd, including all modules, to one buffer. When the buffer is full, this
 * function copies it to one that is 4 KiB larger. The 30 MB of this service's modules cause about 200 copies, which
 * take 3 s. Growing the buffer by half causes one or two.
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
 * Keeps two of V8's compilers off its background thread; on two cores V8 has only one. A compiler that waits there for
 * a garbage collection of the main thread blocks the sweeper for which the main thread waits. Then workerd answers
 * nothing until it is killed. Keeps flags that the user has set. workerd refuses to start with an unknown flag.
 */
function setV8Flags(): void {
  process.env.MINIFLARE_WORKERD_V8_FLAGS ??= '--no-concurrent-recompilation --no-concurrent-sparkplug';
}

waitForChanges();
growConfigurationInLargeSteps();
setV8Flags();

// `require`, because `import` takes half a second longer: Node would parse the module for its exports.
const miniflare = createRequire(import.meta.url)('miniflare') as typeof import('miniflare');
export const { fetch, Log, LogLevel, Miniflare } = miniflare;
export type Miniflare = import('miniflare').Miniflare;
export type { MiniflareOptions, WorkerOptions } from 'miniflare';
