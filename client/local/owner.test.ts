import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { collect, root } from '../../test/helpers/local-process.ts';
import { claimState, recordOwner, runningOwner } from './owner.ts';
import { listProcesses } from './processes.ts';

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-owner-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(stateDir, { recursive: true });
});

const path = () => join(stateDir, 'owner.json');

it('finds the owner where processes cannot be listed', () => {
  vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
  vi.stubEnv('PATH', stateDir); // without ps
  expect(listProcesses()).toEqual([]);
  recordOwner(stateDir, { port: 1 });
  expect(runningOwner(stateDir)?.pid).toBe(process.pid);
  writeFileSync(path(), readFileSync(path(), 'utf8').replace(`${process.pid}`, `${2 ** 22 + 1}`));
  expect(runningOwner(stateDir)).toBeUndefined();
});

it('releases a folder whose owner ended, even if another process has its pid', () => {
  writeFileSync(path(), JSON.stringify({ pid: process.pid, startedAt: 'earlier', port: 1 }));
  expect(runningOwner(stateDir)).toBeUndefined();
});

/** Claims the folder when the file `go` exists; exits with 1 if another process has it at the same time. */
const command = `
  import { existsSync, rmSync, writeFileSync } from 'node:fs';
  import { claimState, forgetOwner } from './client/local/owner.ts';
  const [dir] = process.argv.slice(1);
  console.log('ready');
  while (!existsSync(dir + '/go'));
  await claimState(dir, 0, { brief: true });
  writeFileSync(dir + '/held', '', { flag: 'wx' });
  await new Promise((wake) => setTimeout(wake, 200));
  rmSync(dir + '/held');
  forgetOwner(dir);
`;

describe('claimState', () => {
  it('makes recordings and database private, even in an existing open folder', async () => {
    chmodSync(stateDir, 0o755);
    mkdirSync(join(stateDir, 'v3'), { mode: 0o755 });
    await claimState(stateDir, 0);
    expect((statSync(join(stateDir, 'v3')).mode & 0o777).toString(8)).toBe('700');
    expect((statSync(stateDir).mode & 0o777).toString(8)).toBe('755');
  });

  it('lets one of several commands at a time claim the folder of a killed process', async () => {
    writeFileSync(join(stateDir, 'owner.json'), JSON.stringify({ pid: 2 ** 22 + 1, startedAt: '1', port: 1 }));
    const children = [1, 2, 3].map(() =>
      spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', command, stateDir], { cwd: root }),
    );
    const ends = children.map(collect);
    await Promise.all(children.map((child) => new Promise((ready) => child.stdout.once('data', ready))));
    writeFileSync(join(stateDir, 'go'), '');
    for (const end of ends) expect(await end).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(join(stateDir, 'owner.json'))).toBe(false);
    expect(existsSync(join(stateDir, 'owner.lock'))).toBe(false);
  });

  it('releases the folder if the port is in use', async () => {
    const holder = createServer();
    await new Promise<void>((done) => holder.listen(0, '127.0.0.1', done));
    const { port } = holder.address() as AddressInfo;
    await expect(claimState(stateDir, port)).rejects.toThrow(`Port ${port} `);
    holder.close();
    expect(runningOwner(stateDir)).toBeUndefined();
  });
});
