import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCli } from '../../test/helpers/local-process.ts';
import { checkRuntime } from './runtime.ts';

vi.setConfig({ testTimeout: 60_000 });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-runtime-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Stands where workerd does. */
function program(text: string): string {
  const path = join(folder, 'workerd');
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

const OLD_LIBRARY =
  '#!/bin/sh\necho "workerd: libc.so.6: version \\`GLIBC_2.35\' not found (required by workerd)" >&2\nexit 1\n';
/** As on a system whose C library is musl: the file is there, what loads it is not. */
const OTHER_LIBRARY = '#!/nowhere/ld-linux-x86-64.so.2\n';

describe('a system on which workerd does not run', () => {
  it.each([
    ['with an old C library', OLD_LIBRARY, "version `GLIBC_2.35' not found"],
    ['with another C library', OTHER_LIBRARY, 'ENOENT'],
  ])('is told so by every command that starts it, %s', async (_, text, reason) => {
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

it('says nothing where workerd runs', async () => {
  await checkRuntime();
});
