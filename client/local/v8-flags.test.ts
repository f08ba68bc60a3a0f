import { afterEach, expect, it, vi } from 'vitest';
import { Log, LogLevel, Miniflare } from './miniflare.ts';
import { withV8Flags } from './v8-flags.ts';

afterEach(() => vi.unstubAllEnvs());

const NAME = 'MINIFLARE_WORKERD_V8_FLAGS';
const tooHeavyToFail = { timeout: 60_000 };

/** Starts workerd and gives its answer; its complaints are in the error. */
async function answerOfWorkerd(): Promise<string> {
  const script = 'export default { fetch: () => new Response("runs") };';
  const miniflare = new Miniflare({ modules: true, script, log: new Log(LogLevel.NONE), handleRuntimeStdio: () => {} });
  try {
    await miniflare.ready;
    return await (await miniflare.dispatchFetch('http://worker/')).text();
  } finally {
    await miniflare.dispose().catch(() => {});
  }
}

it('workerd takes the flags', tooHeavyToFail, async () => {
  const flags = await withV8Flags(async () => {
    expect(await answerOfWorkerd()).toBe('runs');
    return process.env[NAME];
  });
  expect(flags).toBe('--no-concurrent-recompilation --no-concurrent-sparkplug');
  expect(process.env[NAME]).toBeUndefined();
});

it('workerd refuses flags that it does not know, so that a wrong one is noticed', tooHeavyToFail, async () => {
  vi.stubEnv(NAME, '--no-concurrent-nonsense');
  await expect(withV8Flags(answerOfWorkerd)).rejects.toThrow('unrecognized V8 flag');
});

it('flags of the user stay', async () => {
  vi.stubEnv(NAME, '--max-lazy');
  expect(await withV8Flags(async () => process.env[NAME])).toBe('--max-lazy');
  expect(process.env[NAME]).toBe('--max-lazy');
});

it('starts at the same time share the flags', async () => {
  let endFirst = (): void => {};
  const first = withV8Flags(() => new Promise<void>((done) => (endFirst = done)));
  const second = withV8Flags(async () => {
    await first;
    return process.env[NAME];
  });
  endFirst();
  expect(await second).toContain('--no-concurrent-recompilation');
  expect(process.env[NAME]).toBeUndefined();
});
