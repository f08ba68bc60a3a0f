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
import { openLogFile, runtimeLines } from './log-file.ts';

let folder: string;
let path: string;
let failures: string[];
const open = () => openLogFile(path, (why) => failures.push(why));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-log-'));
  path = join(folder, 'service.log');
  failures = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the log of the local service', () => {
  it('is appended to and readable only by its owner', () => {
    for (const text of ['one\n', 'two\n']) {
      const log = open();
      log.write(text);
      log.close();
      log.write('after the end\n');
    }
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
    expect(failures).toEqual([]);
  });

  it('is rotated at the start when it is too long', () => {
    writeFileSync(path, Buffer.alloc(16 * 1024 * 1024 + 1));
    const log = open();
    log.write('new\n');
    log.close();
    expect(readFileSync(path, 'utf8')).toBe('new\n');
    expect(statSync(`${path}.1`).size).toBe(16 * 1024 * 1024 + 1);
  });

  it('is rotated when it becomes too long', () => {
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

  it('reports once that the file cannot be opened', () => {
    mkdirSync(path);
    const log = open();
    log.write('one\n');
    log.write('two\n');
    log.close();
    expect(failures).toEqual([expect.stringContaining('EISDIR')]);
  });

  it.runIf(existsSync('/dev/full'))('reports once that the disk is full, without ending the service', () => {
    symlinkSync('/dev/full', path);
    const log = open();
    expect(failures).toEqual([]);
    log.write('one\n');
    log.write('two\n');
    log.close();
    expect(failures).toEqual([expect.stringContaining('ENOSPC')]);
  });
});

it("writes workerd's lines as JSON objects without those about connections closed by the other end", () => {
  const lines: string[] = [];
  const take = runtimeLines((line) => lines.push(line));
  take('{"level":"info","event":"job_pla');
  take('nned"}\nworkerd/io/worker.c++:1: warning: it is {odd}\n');
  take(
    'workerd/server/server.c++:5351: error: Uncaught exception: kj/async-io-unix.c++:1: disconnected: ::write(fd, b)\n',
  );
  take('stack: /bin/workerd@1f /bin/workerd@2e\n\n{not json}\n');
  expect(lines.map((line) => [line.endsWith('\n'), JSON.parse(line)])).toEqual([
    [true, { level: 'info', event: 'job_planned' }],
    [true, { level: 'warn', event: 'runtime', message: 'workerd/io/worker.c++:1: warning: it is {odd}' }],
    [true, { level: 'warn', event: 'runtime', message: '{not json}' }],
  ]);
});

it('keeps lines about lost connections that indicate a fault', () => {
  const lines: string[] = [];
  const take = runtimeLines((line) => lines.push(JSON.parse(line).message));
  const closed = [
    'workerd/server/server.c++:3613: error: Uncaught exception: kj/async-io-unix.c++:568: disconnected: ' +
      '::read(fd, buffer, maxBytes): Connection reset by peer',
    'workerd/server/server.c++:3360: error: Uncaught exception: kj/async-io-unix.c++:290: disconnected: ' +
      'worker_do_not_log; Request failed due to internal error',
  ];
  const faults = [
    'workerd/server/server.c++:3613: error: Uncaught exception: kj/async-io-unix.c++:1298: disconnected: ' +
      'connect(): Connection refused',
    'workerd/io/io-context.c++:420: error: uncaught exception; exception = kj/compat/http.c++:6014: disconnected: ' +
      'peer closed',
    'Uncaught (in promise) Error: Network connection lost.',
  ];
  take([...closed, ...faults, ''].join('\n'));
  expect(lines).toEqual(faults);
});
