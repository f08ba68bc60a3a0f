import { expect, it } from 'vitest';
import { runtimeLines } from './runtime-lines.ts';

it('every line of the log is a JSON object, also what the runtime says; a connection that was closed is not told', () => {
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

it('a lost connection is reported when it is an error', () => {
  const lines: string[] = [];
  const take = runtimeLines((line) => lines.push(JSON.parse(line).message));
  const closed = [
    'workerd/server/server.c++:3613: error: Uncaught exception: kj/async-io-unix.c++:568: disconnected: ::read(fd, buffer, maxBytes): Connection reset by peer',
    'workerd/server/server.c++:3360: error: Uncaught exception: kj/async-io-unix.c++:290: disconnected: worker_do_not_log; Request failed due to internal error',
  ];
  const faults = [
    'workerd/server/server.c++:3613: error: Uncaught exception: kj/async-io-unix.c++:1298: disconnected: connect(): Connection refused',
    'workerd/io/io-context.c++:420: error: uncaught exception; exception = kj/compat/http.c++:6014: disconnected: peer closed',
    'Uncaught (in promise) Error: Network connection lost.',
  ];
  take([...closed, ...faults, ''].join('\n'));
  expect(lines).toEqual(faults);
});
