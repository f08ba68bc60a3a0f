import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openLogFile } from './log-file.ts';

let folder: string;
let path: string;
let givenUp: string[];
const open = () => openLogFile(path, (why) => givenUp.push(why));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-log-'));
  path = join(folder, 'service.log');
  givenUp = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the log of the local service', () => {
  it('is appended to, and only its owner reads it', () => {
    for (const text of ['one\n', 'two\n']) {
      const log = open();
      log.write(text);
      log.close();
      log.write('after the end\n');
    }
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
    expect(givenUp).toEqual([]);
  });

  it('is begun anew when it has grown too long, and the last one kept: it was thrown away after a crash', () => {
    writeFileSync(path, Buffer.alloc(16 * 1024 * 1024 + 1));
    const log = open();
    log.write('new\n');
    log.close();
    expect(readFileSync(path, 'utf8')).toBe('new\n');
    expect(statSync(`${path}.1`).size).toBe(16 * 1024 * 1024 + 1);
  });

  it('is begun anew while it is written, so that a service of months fills no disk', () => {
    const log = open();
    const megabyte = `${'x'.repeat(1024 * 1024 - 1)}\n`;
    for (let i = 0; i < 40; i++) log.write(megabyte);
    log.write('last\n');
    log.close();
    expect(readFileSync(path, 'utf8').endsWith('last\n')).toBe(true);
    expect(statSync(path).size).toBeLessThan(17 * 1024 * 1024);
    expect(statSync(`${path}.1`).size).toBeLessThan(18 * 1024 * 1024);
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
  });

  it('is given up with one word where it cannot be opened', () => {
    mkdirSync(path);
    const log = open();
    log.write('one\n');
    log.write('two\n');
    log.close();
    expect(givenUp).toEqual([expect.stringContaining('EISDIR')]);
  });

  it.runIf(existsSync('/dev/full'))(
    'is given up with one word where the disk gets full, without ending the service',
    () => {
      symlinkSync('/dev/full', path);
      const log = open();
      expect(givenUp).toEqual([]);
      log.write('one\n');
      log.write('two\n');
      log.close();
      expect(givenUp).toEqual([expect.stringContaining('ENOSPC')]);
    },
  );
});
