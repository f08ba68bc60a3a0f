import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCli } from '../../test/helpers/local-process.ts';
import { Log, LogLevel, Miniflare } from './miniflare.ts';
import { checkWorkerd } from './workerd-program.ts';

vi.setConfig({ testTimeout: 60_000 });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-runtime-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes an executable that replaces workerd. */
function program(text: string): string {
  const path = join(folder, 'workerd');
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

const OLD_LIBRARY =
  '#!/bin/sh\necho "workerd: libc.so.6: version \\`GLIBC_2.35\' not found (required by workerd)" >&2\nexit 1\n';
/** Simulates a system with musl as C library: the file exists, but its loader does not. */
const OTHER_LIBRARY = '#!/nowhere/ld-linux-x86-64.so.2\n';

describe('a system on which workerd does not run', () => {
  it.each([
    ['with an old C library', OLD_LIBRARY, "version `GLIBC_2.35' not found"],
    ['with another C library', OTHER_LIBRARY, 'ENOENT'],
  ])('is reported by every command that starts it, %s', async (_, text, reason) => {
    const state = join(folder, 'state');
    const env = { MINIFLARE_WORKERD_PATH: program(text), ROLLCALL_STATE: state };
    const start = await runCli('start', [], { ...env, PORT: '0' });
    const key = await runCli('key', ['--account', 'ann'], env);
    for (const { code, stdout, stderr } of [start, key]) {
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /^(rollcall is starting …\n)?rollcall: workerd.*does not run on this system.*glibc 2\.35.*\n$/,
      );
    }
    expect(key.stderr).toContain(reason);
    expect(existsSync(join(state, 'owner.json'))).toBe(false);

    const diarize = await runCli('diarize', ['test/fixtures/conversation.mp3'], env);
    expect([diarize.code, diarize.stdout]).toEqual([3, '']);
    expect(diarize.stderr).toContain('does not run on this system');
  });
});

it('passes the check where workerd runs', async () => {
  await checkWorkerd();
});

const V8_FLAGS_VARIABLE = 'MINIFLARE_WORKERD_V8_FLAGS';

/** Starts workerd. @returns its answer @throws an error with its output */
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

it('sets flags that workerd accepts', async () => {
  expect(process.env[V8_FLAGS_VARIABLE]).toBe('--no-concurrent-recompilation --no-concurrent-sparkplug');
  expect(await answerOfWorkerd()).toBe('runs');
});

it('keeps flags of the user, and reports the error of workerd about an unknown one', async () => {
  vi.stubEnv(V8_FLAGS_VARIABLE, '--no-concurrent-nonsense');
  vi.resetModules();
  await import('./miniflare.ts');
  await expect(answerOfWorkerd()).rejects.toThrow('unrecognized V8 flag');
});
