import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { changeAccount } from '../../client/account-settings.ts';
import { openDatabase } from '../../client/local/database.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { serveRanges, startServer, type TestServer } from '../helpers/http-server.ts';
import { conversation, type RunningService, root, startService } from '../helpers/local-process.ts';
import { loopMp3 } from '../helpers/mp3.ts';

/** Each round kills at another of the ten POINTS. */
const ROUNDS = Number(process.env.ROUNDS ?? 2);
/** Eleven minutes: three shards. */
const recording = loopMp3(readFileSync(conversation), 12);
const ETAG = '"v1"';

/** When to kill all processes: after `count` log lines of an event, plus `laterMs`. */
const POINTS: readonly { readonly event: string; readonly count: number; readonly laterMs?: number }[] = [
  { event: 'request', count: 8 },
  { event: 'shard_done', count: 1 },
  { event: 'first_shard_ready', count: 1 },
  { event: 'shard_done', count: 5 },
  { event: 'first_shard_ready', count: 2, laterMs: 400 },
  { event: 'shard_done', count: 12 },
  { event: 'job_ingested', count: 1 },
  { event: 'shard_done', count: 20 },
  { event: 'job_ingested', count: 3, laterMs: 200 },
  { event: 'job_assembled', count: 1 },
];

let stateDir: string;
let service: RunningService;
let server: TestServer;

beforeAll(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-kills-'));
  server = await startServer((request, response) => {
    if (request.url?.startsWith('/ranges')) serveRanges(request, response, { bytes: recording, etag: ETAG });
    else response.writeHead(200, { 'Content-Length': recording.length, ETag: ETAG }).end(recording);
  });
  service = await startService(stateDir);
  const { run, close } = await openDatabase(stateDir, root);
  await changeAccount(run, 'local', { getLimit: 100_000, postLimit: 100_000 });
  await close();
}, 120_000);
afterAll(async () => {
  await service?.killAll();
  await server?.close();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

const client = () => new RollcallClient(service);

async function upload(): Promise<string> {
  const url = await client().upload('recording', recording);
  if (!url.ok) throw new Error(url.error.message);
  return url.value;
}

async function outputBytes(jobId: string): Promise<string> {
  const headers = { Authorization: `Bearer ${service.key}` };
  const text = await (await fetch(`${service.url}/v1/jobs/${jobId}`, { headers })).text();
  return text.slice(text.indexOf('"output":'));
}

const countEvents = (event: string) => service.log().split(`"event":"${event}"`).length - 1;

async function reach({ event, count, laterMs = 0 }: (typeof POINTS)[number]): Promise<void> {
  while (countEvents(event) < count) await new Promise((wake) => setTimeout(wake, 20));
  await new Promise((wake) => setTimeout(wake, laterMs));
}

it(`eight jobs have the output of an uninterrupted run after kill -9 of all processes, in ${ROUNDS} rounds`, {
  timeout: 300_000 * (ROUNDS + 1),
}, async () => {
  const media = await upload();
  const reference = await client().diarize({ url: media, exclusive: true, turnLevelConfidence: true });
  if (!reference.ok) throw new Error(reference.error.message);
  await client().wait(reference.value.jobId);
  const expected = await outputBytes(reference.value.jobId);
  expect(expected).toContain('"diarization"');
  for (let round = 0; round < ROUNDS; round++) {
    await service.killAll();
    service = await startService(stateDir, Number(new URL(service.url).port));
    const urls = [
      media,
      media,
      ...['ranges/1', 'ranges/2', 'ranges/3', 'full/1', 'full/2', 'full/3'].map((path) => `${server.origin}/${path}`),
    ];
    const ids: string[] = [];
    for (const url of urls) {
      const job = await client().diarize({ url, exclusive: true, turnLevelConfidence: true });
      if (!job.ok) throw new Error(job.error.message);
      ids.push(job.value.jobId);
    }
    await reach(POINTS[round % POINTS.length]);
    await service.killAll();
    service = await startService(stateDir, Number(new URL(service.url).port));
    for (const id of ids) {
      const job = await client().wait(id);
      expect(job.ok && job.value.status, service.log().slice(-2000)).toBe('succeeded');
      expect(await outputBytes(id)).toBe(expected);
    }
  }
});
