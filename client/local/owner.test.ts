import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { livingOwner, recordOwner } from './owner.ts';
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

it('a folder has its owner also where processes cannot be listed: two services on one database break it', () => {
  vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
  vi.stubEnv('PATH', stateDir); // without ps
  expect(listProcesses()).toEqual([]);
  recordOwner(stateDir, { port: 1 });
  expect(livingOwner(stateDir)?.pid).toBe(process.pid);
  writeFileSync(path(), readFileSync(path(), 'utf8').replace(`${process.pid}`, `${2 ** 22 + 1}`));
  expect(livingOwner(stateDir)).toBeUndefined();
});

it('a folder is free when its owner has ended, and its number is that of another process', () => {
  writeFileSync(path(), JSON.stringify({ pid: process.pid, startedAt: 'earlier', port: 1 }));
  expect(livingOwner(stateDir)).toBeUndefined();
});
