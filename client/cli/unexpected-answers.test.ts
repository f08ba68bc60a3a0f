import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { collect, conversation, spawnCli } from '../../test/helpers/local-process.ts';

vi.setConfig({ testTimeout: 60_000 });

let server: TestServer;
let requests: string[];
let answers: Record<string, RequestListener>;
beforeAll(async () => {
  server = await startServer((request, response) => {
    const call = `${request.method} ${request.url}`;
    requests.push(call);
    request.resume();
    response.setHeader('Content-Type', 'application/json');
    if (call === 'GET /v1/test') response.end('{"status":"OK","message":""}');
    else (answers[call] ?? tooMany)(request, response);
  });
});
afterAll(() => server.close());

const tooMany: RequestListener = (_, response) =>
  void response.writeHead(429, { 'Retry-After': '60' }).end('{"requestId":"r","message":"Too many requests."}');

function start(command: string, args: readonly string[]) {
  requests = [];
  return spawnCli(command, args, { ROLLCALL_URL: server.origin, ROLLCALL_KEY: 'k' });
}

it.each([
  ['diarize', ['https://example.com/a.wav'], 'POST /v1/diarize'],
  ['voiceprint', ['https://example.com/a.wav'], 'POST /v1/voiceprint'],
  ['live', [conversation, '--fast'], 'POST /v1/live'],
])('Ctrl-C ends npm run %s at once while it waits for the rate limit', async (command, args, call) => {
  answers = {};
  const child = start(command, args);
  child.stderr?.on('data', (chunk: Buffer) => {
    if (chunk.toString().includes('Trying again')) child.kill('SIGINT');
  });
  const run = await collect(child);
  expect(run).toMatchObject({ code: 130, stdout: '' });
  expect(run.stderr).toMatch(/Trying again in 60 s …\n$/);
  expect(requests.at(-1)).toBe(call);
});

it('prints the address of the result if another program answers for a job', async () => {
  answers = {
    'POST /v1/diarize': (_, response) => void response.end('{"jobId":"j","status":"created"}'),
    'GET /v1/jobs/j': (_, response) => void response.end('<html>Please log in</html>'),
  };
  const run = await collect(start('diarize', ['https://example.com/a.wav']));
  expect(run).toMatchObject({ code: 3, stdout: '' });
  expect(run.stderr).toMatch(
    /but the answer is not from rollcall\. The job j may continue; its result: curl .*\/v1\/jobs\/j\/output"\n$/,
  );
});

it('prints the reason why a job could not be canceled in one sentence', async () => {
  answers = {
    'POST /v1/diarize': (_, response) => void response.end('{"jobId":"j","status":"created"}'),
    'GET /v1/jobs/j': (_, response) => void response.end('{"jobId":"j","status":"running"}'),
    'POST /v1/jobs/j/cancel': (_, response) =>
      void response.writeHead(403).end('{"requestId":"r","message":"The API key lacks the scope jobs."}'),
  };
  const child = start('diarize', ['https://example.com/a.wav']);
  child.stderr?.on('data', (chunk: Buffer) => {
    if (chunk.toString().includes('diarizing')) child.kill('SIGINT');
  });
  const run = await collect(child);
  expect(run).toMatchObject({ code: 130, stdout: '' });
  expect(run.stderr).toContain(
    'The job j could not be canceled and continues: the service refused (403): The API key lacks the scope jobs.\n',
  );
});

it('prints the address of the result if the key is revoked during a job', async () => {
  answers = {
    'POST /v1/diarize': (_, response) => void response.end('{"jobId":"j","status":"created"}'),
    'GET /v1/jobs/j': (_, response) =>
      void response.writeHead(401).end('{"requestId":"r","message":"The API key is revoked."}'),
  };
  const run = await collect(start('diarize', ['https://example.com/a.wav']));
  expect(run).toMatchObject({ code: 1, stdout: '' });
  expect(run.stderr).toMatch(
    /\(401\): The API key is revoked\. The job j may continue; its result: curl .*\/v1\/jobs\/j\/output"\n$/,
  );
});
