import { randomUUID } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { localKey } from '../client/cli/local-key.ts';
import { runSqlOn } from '../client/local/database.ts';
import { listProcesses } from '../client/local/processes.ts';
import { type LocalServiceOptions, startLocalService } from '../client/local/service.ts';
import { RollcallClient } from '../client/sdk/client.ts';
import type { DiarizeOptions, DiarizeOutput, ErrorOutput, JobResult } from '../client/sdk/types.ts';
import { cacheDir } from './shared.ts';

interface FileServer {
  readonly url: string;
  /** Requests answered so far. */
  readonly requests: () => number;
  close(): Promise<void>;
}

/** Serves one file on a free loopback port, with byte ranges and an ETag, as a storage service would. */
function serveFile(path: string): Promise<FileServer> {
  const size = statSync(path).size;
  const etag = `"bench-${size}"`;
  let count = 0;
  const server = createServer((request, response) => {
    count++;
    const headers = { 'Accept-Ranges': 'bytes', ETag: etag, 'Content-Type': 'application/octet-stream' };
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = range ? Number(range[1]) : 0;
    const end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
    if (start > end) {
      response.writeHead(416, { 'Content-Range': `bytes */${size}` }).end();
      return;
    }
    response.writeHead(range ? 206 : 200, {
      ...headers,
      'Content-Length': end - start + 1,
      ...(range ? { 'Content-Range': `bytes ${start}-${end}/${size}` } : {}),
    });
    if (request.method === 'HEAD') response.end();
    else createReadStream(path, { start, end }).pipe(response);
  });
  return listen(server).then((listening) => ({ ...listening, requests: () => count }));
}

/** Starts a server on a free loopback port; closing it ends its open connections. */
export function listen(server: Server): Promise<Pick<FileServer, 'url' | 'close'>> {
  return new Promise((done, refuse) => {
    server.once('error', refuse);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      const close = (): Promise<void> =>
        new Promise((closed) => {
          server.close(() => closed());
          server.closeAllConnections();
        });
      done({ url: `http://127.0.0.1:${port}/recording`, close });
    });
  });
}

/** Limit of requests a minute, above what any measurement sends. */
const UNLIMITED = 1_000_000_000;
/** Events that end a job's log. */
const ENDS = new Set(['job_succeeded', 'job_failed', 'job_canceled']);
const LOOK_EVERY_MS = 20;

/** One structured line of the Worker's log. */
export interface LogEntry {
  readonly event: string;
  /** When workerd wrote it, milliseconds of this machine's clock. */
  readonly atMs: number;
  readonly [field: string]: unknown;
}

export interface FinishedJob {
  readonly output: DiarizeOutput;
  /** When the job was created, by this machine's clock. */
  readonly createdAtMs: number;
  /** From the job's creation to its success, by the service's clock. */
  readonly wallMs: number;
  /** Requests of the service to the recording's server. */
  readonly requests: number;
  /** Log lines of this job. */
  readonly log: readonly LogEntry[];
}

/** A separate service for a measurement, in real workerd, on an empty state folder. */
export class BenchService {
  private constructor(
    private readonly stateDir: string,
    private readonly service: Awaited<ReturnType<typeof startLocalService>>,
    private readonly client: RollcallClient,
    /** API key of the account `local`. */
    readonly key: string,
    private readonly entries: LogEntry[],
  ) {}

  /**
   * @param options `root` is the checkout to run, this one by default; `vars` replace variables of its wrangler.toml
   */
  static async start(
    options: Pick<LocalServiceOptions, 'root' | 'inspectorPort' | 'beside' | 'vars'> = {},
  ): Promise<BenchService> {
    const stateDir = mkdtempSync(join(cacheDir(), 'state-'));
    const entries: LogEntry[] = [];
    let rest = '';
    const onLog = (text: string): void => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const entry = parseLogLine(line);
        if (entry?.jobId) entries.push(entry);
      }
    };
    try {
      const service = await startLocalService({ stateDir, onLog, ...options });
      const key = await localKey(service, stateDir);
      return new BenchService(stateDir, service, new RollcallClient({ url: service.url, key }), key, entries);
    } catch (error) {
      rmSync(stateDir, { recursive: true, force: true });
      throw error;
    }
  }

  /** Address without a trailing slash. */
  get url(): string {
    return this.service.url;
  }

  /** Raises the rate limits of the account `local` above what a measurement sends. */
  async raiseLimits(): Promise<void> {
    const run = runSqlOn(this.service.db);
    const columns = await run("SELECT name FROM pragma_table_info('accounts')");
    if (!columns.some(({ name }) => name === 'post_limit')) return;
    await run("UPDATE accounts SET post_limit = ?, get_limit = ? WHERE name = 'local'", UNLIMITED, UNLIMITED);
  }

  /**
   * Stores a recording.
   *
   * @returns its `media://` address
   */
  async upload(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
    const uploaded = await this.client.upload(name, bytes);
    if (!uploaded.ok) throw new Error(uploaded.error.message);
    return uploaded.value;
  }

  /**
   * Diarizes a file that the service fetches over HTTP from this process.
   *
   * @throws Error when the job does not succeed
   */
  async diarize(path: string, options: Omit<DiarizeOptions, 'url'>): Promise<FinishedJob> {
    const files = await serveFile(path);
    try {
      const job = await this.run({ ...options, url: files.url }, randomUUID());
      const createdAtMs = Date.parse(job.createdAt);
      return {
        output: job.output as DiarizeOutput,
        createdAtMs,
        wallMs: Date.parse(job.updatedAt) - createdAtMs,
        requests: files.requests(),
        log: this.logOf(job.jobId),
      };
    } finally {
      await files.close();
    }
  }

  /**
   * Runs a diarization job to its end.
   *
   * @throws Error when the job does not succeed
   */
  async run(request: DiarizeOptions, idempotencyKey: string): Promise<JobResult> {
    const job = await this.wait(await this.create(request, idempotencyKey));
    if (job.status !== 'succeeded' || !job.output) {
      throw new Error(`the job ${job.status}: ${(job.output as ErrorOutput | undefined)?.error ?? 'no output'}`);
    }
    return job;
  }

  /** Creates a job. @returns its id */
  async create(request: DiarizeOptions, idempotencyKey: string = randomUUID()): Promise<string> {
    let created = await this.client.diarize(request, idempotencyKey);
    // The service may have closed the idle connection while this process computed.
    if (!created.ok && created.error.kind === 'unreachable')
      created = await this.client.diarize(request, idempotencyKey);
    if (!created.ok) throw new Error(created.error.message);
    return created.value.jobId;
  }

  /** The job when it has ended or the signal aborts. */
  async wait(jobId: string, signal?: AbortSignal): Promise<JobResult> {
    const waited = await this.client.wait(jobId, { pollMs: 500, signal });
    if (!waited.ok) throw new Error(waited.error.message);
    return waited.value;
  }

  /** Cancels a job. @returns its state @throws Error if the service refuses */
  async cancel(jobId: string): Promise<JobResult> {
    const canceled = await this.client.cancel(jobId);
    if (!canceled.ok) throw new Error(canceled.error.message);
    return canceled.value;
  }

  /** Log lines of a job so far. */
  logOf(jobId: string): readonly LogEntry[] {
    return this.entries.filter((entry) => entry.jobId === jobId);
  }

  /**
   * Waits for a line of a job's log.
   *
   * @throws Error when the job ends without it
   */
  async logged(jobId: string, event: string): Promise<LogEntry> {
    for (;;) {
      const log = this.logOf(jobId);
      const found = log.find((entry) => entry.event === event);
      if (found) return found;
      const ended = log.find((entry) => ENDS.has(entry.event));
      if (ended) throw new Error(`the job ended (${ended.event}) without ${event}`);
      await new Promise((wake) => setTimeout(wake, LOOK_EVERY_MS));
    }
  }

  /** Process id of the workerd that runs the Worker. */
  workerdPid(): number | undefined {
    const address = `--socket-addr=entry=127.0.0.1:${this.service.port} `;
    return listProcesses().find(({ command }) => command.includes('workerd') && `${command} `.includes(address))?.pid;
  }

  async stop(): Promise<void> {
    await this.service.stop();
    rmSync(this.stateDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Parses a structured line; undefined for any other text. */
function parseLogLine(line: string): LogEntry | undefined {
  const start = line.indexOf('{');
  if (start < 0) return undefined;
  try {
    const value: unknown = JSON.parse(line.slice(start));
    const isEntry = typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string';
    return isEntry ? ({ ...value, atMs: Date.now() } as unknown as LogEntry) : undefined;
  } catch {
    return undefined;
  }
}
