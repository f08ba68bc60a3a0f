import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { BenchService } from './bench-service.ts';
import { type LoadRequest, type LoadResult, load, percentile, together } from './load.ts';
import { table } from './report.ts';
import { logProgress } from './shared.ts';

const CLIENTS = 50;
/** Endpoint and floor alternate in short rounds, so that other load of the machine affects both. */
const ROUNDS = 3;
const WARM_UP_SECONDS = 2;
const ROUND_SECONDS = 4;

/**
 * A Worker that answers a constant in the same workerd, behind the same entry: the least time of a request. It reads
 * the body, because workerd cuts the connection of a request that is answered earlier.
 */
const FLOOR_PATH = '/bench-floor';
const FLOOR = {
  script: `export default {
    async fetch(request) {
      await request.arrayBuffer();
      return new Response('{"status":"OK"}', { headers: { 'Content-Type': 'application/json' } });
    },
  }`,
  route: `*${FLOOR_PATH}`,
};

interface Measured {
  readonly name: string;
  readonly endpoint: LoadResult;
  readonly floor: LoadResult;
}

/** Latency and throughput of the API with concurrent clients, without inference. */
export async function measureApi(): Promise<string> {
  const service = await BenchService.start({ beside: FLOOR });
  try {
    await service.raiseLimits();
    const rows: Measured[] = [];
    for (const [name, request] of await requests(service)) {
      logProgress(`${name}: ${CLIENTS} clients`);
      rows.push({ name, ...(await measureOne(service.url, request)) });
    }
    return render(rows);
  } finally {
    await service.stop();
  }
}

async function measureOne(origin: string, request: LoadRequest): Promise<Omit<Measured, 'name'>> {
  const floorRequest = { ...request, path: FLOOR_PATH };
  const warmUp = { clients: CLIENTS, seconds: WARM_UP_SECONDS };
  await load(origin, request, warmUp);
  await load(origin, floorRequest, warmUp);
  const endpoint: LoadResult[] = [];
  const floor: LoadResult[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const options = { clients: CLIENTS, seconds: ROUND_SECONDS };
    endpoint.push(await load(origin, request, options));
    floor.push(await load(origin, floorRequest, options));
  }
  return { endpoint: together(endpoint), floor: together(floor) };
}

/** The requests that are measured. The job that they read and replay has ended before. */
async function requests(service: BenchService): Promise<[string, LoadRequest][]> {
  const recording = new Uint8Array(readFileSync(join(projectDir, 'test/fixtures/conversation.mp3')));
  const url = await service.upload('conversation', recording);
  const key = randomUUID();
  const job = await service.run({ url }, key);
  const headers = { Authorization: `Bearer ${service.key}`, 'Content-Type': 'application/json' };
  const post = (path: string, body: object, extra = {}): LoadRequest => ({
    method: 'POST',
    path,
    headers: { ...headers, ...extra },
    body: JSON.stringify(body),
  });
  return [
    ['GET /v1/test', { method: 'GET', path: '/v1/test', headers }],
    ['POST /v1/diarize, a replay', post('/v1/diarize', { url }, { 'Idempotency-Key': key })],
    ['GET /v1/jobs/{id}', { method: 'GET', path: `/v1/jobs/${job.jobId}`, headers }],
    ['POST /v1/media/input', post('/v1/media/input', { url })],
  ];
}

function render(rows: readonly Measured[]): string {
  const head = [
    '',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'floor requests/s',
    'floor p50 ms',
    'floor p99 ms',
    'p50 ÷ floor',
  ];
  const cells = rows.map(({ name, endpoint, floor }) => [
    `\`${name}\``,
    ...figures(endpoint),
    ...figures(floor),
    (percentile(endpoint.latenciesMs, 0.5) / percentile(floor.latenciesMs, 0.5)).toFixed(1),
  ]);
  return `${CLIENTS} concurrent clients, each waiting for its answer before it sends the next request,
${ROUNDS * ROUND_SECONDS} s for each row, against the real service in one local workerd, whose one thread runs the
Worker, D1 and R2. The floor is a Worker in the same workerd that answers a constant to the same requests, in
alternation with the endpoint. The replay carries a known Idempotency-Key, so that no job is created; the job that is
read has the output of a 56 s recording. The load comes from the same machine.

${table(head, cells)}`;
}

function figures({ latenciesMs, seconds }: LoadResult): string[] {
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(latenciesMs, share).toFixed(1));
  return [(latenciesMs.length / seconds).toFixed(0), p50, p99];
}
