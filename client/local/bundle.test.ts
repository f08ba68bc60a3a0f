import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { root, runCli } from '../../test/helpers/local-process.ts';
import { API } from '../workers.ts';
import { readBindings } from './bundle.ts';

describe('readBindings', () => {
  let checkout: string;
  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'rollcall-bindings-'));
    cpSync(join(root, 'wrangler.toml'), join(checkout, 'wrangler.toml'));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(checkout, { recursive: true });
  });

  it('reads variables from .dev.vars without output on stdout', async () => {
    const log = vi.spyOn(console, 'log');
    writeFileSync(join(checkout, '.dev.vars'), 'LIVE_IDLE_SECONDS=7\n');
    expect((await readBindings(checkout, API)).bindings).toMatchObject({ LIVE_IDLE_SECONDS: '7' });
    expect(log).not.toHaveBeenCalled();
  });

  it('writes no log to the home folder', async () => {
    const home = mkdtempSync(join(tmpdir(), 'rollcall-home-'));
    const env = { HOME: home, XDG_CONFIG_HOME: home, ROLLCALL_STATE: join(home, 'state') };
    expect(await runCli('key', ['--account', 'a'], env)).toMatchObject({ code: 0 });
    expect(readdirSync(home)).toEqual(['state']);
    rmSync(home, { recursive: true });
  });

  it("ignores .env, which contains wrangler's token", async () => {
    const before = (await readBindings(checkout, API)).bindings;
    writeFileSync(join(checkout, '.env'), 'CLOUDFLARE_API_TOKEN=secret\nR2_ACCOUNT_ID=0\n');
    expect((await readBindings(checkout, API)).bindings).toEqual(before);
  });
});
