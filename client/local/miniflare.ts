/**
 * Miniflare, mended. Whatever starts a runtime takes it from here.
 *
 * A call of Miniflare's bindings that is not awaited (`prepare`, `bind`) waits with `Atomics.wait` for a thread that stores 1 and then notifies.
 * When that thread is held up between the two, its notice arrives during the next call, which ends without an answer; from then on every
 * call of the process gets the answer of the one before (cloudflare/workers-sdk pull request 15552, mended in a release that
 * Node 20 does not run).
 */
waitForChanges();

export * from 'miniflare';

/** From now on a wait for one shared integer, without a limit of time, ends when the integer has changed, whoever notifies before. */
function waitForChanges(): void {
  const { wait } = Atomics;
  Atomics.wait = (array: Int32Array | BigInt64Array, index: number, value: number | bigint, timeoutMs?: number) => {
    const once = () => wait(array as Int32Array, index, value as number, timeoutMs);
    let outcome = once();
    if (array.length > 1 || timeoutMs !== undefined) return outcome;
    while (outcome === 'ok' && Atomics.load(array as Int32Array, index) === value) outcome = once();
    return outcome;
  };
}
