import { Pool } from 'undici';
import type { DiarizeOutput } from '../../client/sdk/types.ts';
import type { BenchService, LogEntry } from '../bench-service.ts';
import { percentile } from '../load.ts';
import { spanStart } from '../stages.ts';
import type { Origin } from './origins.ts';

export const SETTING = 'community-1';

/** A job that has ended. */
export interface EndedJob {
  /** Error code, or `canceled` if it took too long; undefined for a success. */
  readonly fault: string | undefined;
  /** Output of a success. */
  readonly output: DiarizeOutput | undefined;
  readonly createdAtMs: number;
  readonly wallMs: number;
  readonly log: readonly LogEntry[];
}

/** Runs a job to its end. @param limitMs time after which it is canceled */
export async function runJob(
  service: BenchService,
  { url }: Pick<Origin, 'url'>,
  model: 'precision-2' | 'community-1' = SETTING,
  limitMs?: number,
): Promise<EndedJob> {
  const jobId = await service.create({ url, model });
  const signal = limitMs === undefined ? undefined : AbortSignal.timeout(limitMs);
  let job = await service.wait(jobId, signal);
  if (signal?.aborted) job = await service.cancel(jobId);
  const createdAtMs = Date.parse(job.createdAt);
  const log = service.logOf(jobId);
  const failed = log.find(({ event }) => event === 'job_failed');
  return {
    fault: job.status === 'succeeded' ? undefined : String(failed?.code ?? job.status),
    output: job.status === 'succeeded' ? (job.output as DiarizeOutput) : undefined,
    createdAtMs,
    wallMs: Date.parse(job.updatedAt) - createdAtMs,
    log,
  };
}

/** Runs a job to its end. @throws Error if it does not runToSuccess */
export async function runToSuccess(
  service: BenchService,
  origin: Pick<Origin, 'url'>,
  model?: 'precision-2' | 'community-1',
): Promise<EndedJob> {
  const job = await runJob(service, origin, model);
  if (job.fault !== undefined) throw new Error(`the job ended with ${job.fault}`);
  return job;
}

/** Milliseconds from created to the first log line of the event; undefined if there is none. */
export function sinceCreated(
  { log, createdAtMs }: Pick<EndedJob, 'log' | 'createdAtMs'>,
  event: string,
): number | undefined {
  const entry = log.find((candidate) => candidate.event === event);
  return entry && entry.atMs - createdAtMs;
}

/**
 * Milliseconds from created to the message of the first shard. For a short recording, all messages are sent at the end.
 */
export const firstShardSent = (job: Pick<EndedJob, 'log' | 'createdAtMs'>): number | undefined =>
  sinceCreated(job, 'first_shard_ready') ?? sinceCreated(job, 'job_ingested');

/** Milliseconds from created to the start of the first shard. */
export function firstShardBegun({ log, createdAtMs }: EndedJob): number {
  const starts = log.filter(({ event }) => event === 'shard_done').map(spanStart);
  return Math.min(...starts) - createdAtMs;
}

export const countOf = (log: readonly LogEntry[], event: string): number =>
  log.filter((entry) => entry.event === event).length;

export const seconds = (ms: number | undefined): string => (ms === undefined ? '–' : `${(ms / 1000).toFixed(1)} s`);

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const EVERY_MS = 200;
/** Errors of undici for a connection that the server closed while idle. */
const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const HEADERS_TIMEOUT_MS = 300_000;

/**
 * Sends `GET /v1/test` every 200 ms without waiting for earlier answers, so that a blocked time counts with every
 * request in it.
 *
 * @returns a function that ends the requests and returns the latency of every answer
 */
export function sampleLatency({ url, key }: { readonly url: string; readonly key: string }): () => Promise<number[]> {
  const pool = new Pool(url, { connections: 64, pipelining: 1, headersTimeout: HEADERS_TIMEOUT_MS });
  const latenciesMs: number[] = [];
  const answers = new Set<Promise<void>>();
  const faults: unknown[] = [];
  const request = async (isFirst = true): Promise<void> => {
    try {
      const headers = { Authorization: `Bearer ${key}` };
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/v1/test', headers });
      await body.text();
      if (statusCode !== 200) throw new Error(`GET /v1/test answered ${statusCode}`);
    } catch (error) {
      if (!isFirst || !CLOSED.has((error as { code?: string }).code ?? '')) throw error;
      await request(false);
    }
  };
  const timer = setInterval(() => {
    const from = performance.now();
    const answer = request().then(
      () => void latenciesMs.push(performance.now() - from),
      (error: unknown) => void faults.push(error),
    );
    answers.add(answer);
    void answer.finally(() => answers.delete(answer));
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(answers);
    await pool.destroy();
    if (faults.length > 0) throw faults[0];
    return latenciesMs;
  };
}

/** Table cells: p50, p99 and maximum. */
export function latencyCells(latenciesMs: readonly number[]): string[] {
  if (latenciesMs.length === 0) return ['–', '–', '–'];
  const longest = Math.max(...latenciesMs);
  return [percentile(latenciesMs, 0.5), percentile(latenciesMs, 0.99), longest].map((ms) => `${ms.toFixed(0)} ms`);
}
