import { hasMembers, type Members } from './answer.ts';
import { randomId } from './id.ts';
import { notTheService, originOf, request } from './request.ts';
import type {
  ClientError,
  DiarizeOptions,
  IdentifyOptions,
  JobCreated,
  JobList,
  JobResult,
  JobState,
  JobStatus,
  LiveCreated,
  LiveOptions,
  LiveState,
  Outcome,
  Usage,
  VoiceprintOptions,
} from './types.ts';
import { readText, Watch } from './watch.ts';

export interface ClientOptions {
  /** Address of the service, without `/v1`. */
  readonly url: string;
  /** API key, sent as bearer token. */
  readonly key: string;
  /** Longest wait for the beginning of an answer, and for more of it; uploads excepted. */
  readonly timeoutMs?: number;
  /** Called when the account's rate limit is reached, before the client waits and repeats the call. */
  readonly onRateLimit?: (waitSeconds: number, why: string) => void;
}

export interface WaitOptions {
  readonly pollMs?: number;
  readonly signal?: AbortSignal;
  /** How long polls may fail before the wait is given up: a service may be restarted meanwhile. */
  readonly patienceMs?: number;
  /** Called after each poll. */
  readonly onUpdate?: (job: JobState) => void;
  /** Called after a failed poll that will be repeated. */
  readonly onTrouble?: (error: ClientError) => void;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const FIRST_POLL_MS = 200;
const SLOWEST_POLL_MS = 2000;
const DEFAULT_PATIENCE_MS = 30_000;
/** How often a call is repeated that the rate limit refused: other clients of the account may use up window after window. */
const RATE_LIMIT_TRIES = 5;
/** The service's windows are shorter; whoever asks for a longer wait is told to the caller instead. */
const LONGEST_WAIT_SECONDS = 120;

export interface ListOptions {
  readonly status?: JobStatus;
  /** Jobs on a page, 1 to 100; 10 by default. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

const JOB_FIELDS = ['jobId', 'status'] as const;

interface Call<T> extends Members {
  readonly body?: unknown;
  readonly extra?: Readonly<Record<string, string>>;
  readonly complete?: (answer: T, headers: Headers) => T;
  readonly signal?: AbortSignal;
}

/** Typed client of the service over fetch. No method throws for what the network or the service does. */
export class RollcallClient {
  private readonly base: string;
  private readonly key: string;
  private readonly timeoutMs: number;
  private readonly onRateLimit: ClientOptions['onRateLimit'];

  constructor({ url, key, timeoutMs = DEFAULT_TIMEOUT_MS, onRateLimit }: ClientOptions) {
    this.base = `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`;
    this.key = key;
    this.timeoutMs = timeoutMs;
    this.onRateLimit = onRateLimit;
  }

  /** Whether the service is there and takes the key. */
  test(): Promise<Outcome<{ status: string; message: string }>> {
    return this.call('GET', '/test', { fields: ['status', 'message'] });
  }

  /**
   * Stores a recording under a name of this account for 48 hours.
   *
   * @param name letters, digits and `-_./`, without `media://`
   * @param body a stream can be sent only once; a function makes another one after a refusal by the rate limit
   * @param sizeBytes length of a stream
   * @param signal ends the upload
   * @param send replaces `fetch`, which does not report upload progress
   * @returns the address to use as `url` of a job
   */
  async upload(
    name: string,
    body: Blob | Uint8Array | ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>),
    sizeBytes?: number,
    signal?: AbortSignal,
    send: typeof request = request,
  ): Promise<Outcome<string>> {
    const url = `media://${name}`;
    const asked = { body: { url }, fields: ['url'], signal };
    const ticket = await this.call<{ url: string }>('POST', '/media/input', asked);
    if (!ticket.ok) return ticket;
    const headers: Record<string, string> = sizeBytes === undefined ? {} : { 'Content-Length': String(sizeBytes) };
    // Streams need `duplex`, which the DOM's types do not know.
    const init = { method: 'PUT', headers, duplex: 'half', signal } as RequestInit;
    const put = () =>
      send(ticket.value.url, { ...init, body: (typeof body === 'function' ? body() : body) as BodyInit });
    // A stream is gone once it was sent, whatever the answer.
    const stored = body instanceof ReadableStream ? await put() : await this.paced(put, signal);
    if (stored.ok) {
      await stored.value.body?.cancel();
      return { ok: true, value: url };
    }
    if (stored.error.kind !== 'unreachable') return stored;
    const host = originOf(ticket.value.url);
    const elsewhere = host !== undefined && host !== originOf(this.base);
    return { ok: false, error: { ...stored.error, ...(elsewhere && { elsewhere }) } };
  }

  /**
   * Creates a job: one, also when the call or its answer is lost on the way and repeated with the same key.
   *
   * @param signal ends a wait for the rate limit, and no job is created then; a call that is on its way is waited for
   */
  diarize(options: DiarizeOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/diarize', options, idempotencyKey, signal);
  }

  /** As `diarize`, for a voiceprint of one person's recording. */
  voiceprint(options: VoiceprintOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/voiceprint', options, idempotencyKey, signal);
  }

  /** As `diarize`, with names for the speakers whose voiceprints are given. */
  identify(options: IdentifyOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/identify', options, idempotencyKey, signal);
  }

  /**
   * Creates a live stream; `openLiveStream` (client/live) connects to it. Where the answer is lost on the way and the call repeated,
   * a stream is left over that ends by itself, unbilled, when its address expires.
   *
   * @param signal as of `diarize`
   */
  createLive(options: LiveOptions = {}, signal?: AbortSignal): Promise<Outcome<LiveCreated>> {
    return this.call('POST', '/live', { body: options, fields: ['id', 'url'], signal });
  }

  /** How a live stream of the account stands. */
  readLive(id: string): Promise<Outcome<LiveState>> {
    return this.call('GET', `/live/${encodeURIComponent(id)}`, { fields: ['id', 'status'] });
  }

  /**
   * A job as it is now, with its output once it has ended.
   *
   * @param signal ends a wait for the rate limit
   */
  retrieve(jobId: string, signal?: AbortSignal): Promise<Outcome<JobState>> {
    return this.call('GET', `/jobs/${encodeURIComponent(jobId)}`, {
      fields: JOB_FIELDS,
      complete: withProgress,
      signal,
    });
  }

  /** Stops a job that is not done, which is then not billed; gives a job that is done as it is. */
  cancel(jobId: string): Promise<Outcome<JobState>> {
    return this.call('POST', `/jobs/${encodeURIComponent(jobId)}/cancel`, { fields: JOB_FIELDS });
  }

  /** Removes a job with all that it holds, also one that works. Where the answer is lost on the way and the call repeated, it is refused with 404. */
  remove(jobId: string): Promise<Outcome<undefined>> {
    return this.call('DELETE', `/jobs/${encodeURIComponent(jobId)}`, { fields: null });
  }

  /** A page of the account's jobs, the newest first. */
  list({ status, limit, cursor }: ListOptions = {}): Promise<Outcome<JobList>> {
    return this.call('GET', `/jobs${queryOf({ status, limit, cursor })}`, { fields: [], lists: ['items'] });
  }

  /** What was billed, by UTC day and kind; the last 30 days by default. Bounds are dates or datetimes. */
  usage({ from, to }: { readonly from?: string; readonly to?: string } = {}): Promise<Outcome<Usage>> {
    return this.call('GET', `/usage${queryOf({ from, to })}`, { fields: ['from', 'to'], lists: ['days'] });
  }

  /**
   * An address from which a recording can be downloaded that was uploaded under this name, without a key.
   *
   * @param name without `media://`
   */
  async downloadUrl(name: string): Promise<Outcome<string>> {
    const body = { url: `media://${name}` };
    const ticket = await this.call<{ url: string }>('POST', '/media/output', { body, fields: ['url'] });
    return ticket.ok ? { ok: true, value: ticket.value.url } : ticket;
  }

  /** Address of a job's output as a file; it takes `?format=` and needs the key as the API does. */
  outputUrl(jobId: string): string {
    return `${this.base}/jobs/${encodeURIComponent(jobId)}/output`;
  }

  /** Polls until the job has succeeded, failed or was canceled; or until the signal, then with the last state seen. */
  async wait(jobId: string, options: WaitOptions = {}): Promise<Outcome<JobState>> {
    const { pollMs, signal, patienceMs = DEFAULT_PATIENCE_MS, onUpdate, onTrouble } = options;
    let pauseMs = pollMs ?? FIRST_POLL_MS;
    let failingSinceMs: number | undefined;
    let lastSeen: Outcome<JobState> | undefined;
    for (;;) {
      const job = await this.retrieve(jobId, signal);
      if (job.ok) {
        lastSeen = job;
        failingSinceMs = undefined;
        onUpdate?.(job.value);
        if (isTerminal(job.value.status) || signal?.aborted) return job;
      } else if (signal?.aborted) {
        return lastSeen ?? job;
      } else {
        // Not since the last answer: that may be long ago, where polls are rare or the machine has slept.
        failingSinceMs ??= performance.now();
        if (!isPassing(job.error) || performance.now() - failingSinceMs > patienceMs) return job;
        onTrouble?.(job.error);
      }
      await pause(pauseMs, signal);
      if (pollMs === undefined) pauseMs = Math.min(SLOWEST_POLL_MS, pauseMs * 1.3);
    }
  }

  private createJob(
    path: string,
    body: unknown,
    idempotencyKey: string = randomId(),
    signal: AbortSignal | undefined,
  ): Promise<Outcome<JobCreated>> {
    const extra = { 'Idempotency-Key': idempotencyKey };
    return this.call('POST', path, { body, extra, fields: ['jobId'], signal });
  }

  private async call<T>(
    method: string,
    path: string,
    { body, extra, fields, lists, complete = (answer) => answer, signal }: Call<T>,
  ): Promise<Outcome<T>> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.key}`, ...extra };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
    let watch: Watch | undefined;
    const send = () => {
      watch?.end();
      // A question may be given up in its middle; what changes something is waited for, since nobody knows whether it came through.
      watch = new Watch(this.timeoutMs, method === 'GET' ? signal : undefined);
      return request(this.base + path, { ...init, signal: watch.signal });
    };
    const response = await this.paced(async () => {
      const first = await send();
      // A kept connection that the service has closed meanwhile fails only when it is used; every call here may be repeated.
      return !first.ok && first.error.kind === 'unreachable' && first.error.broken ? send() : first;
    }, signal);
    const text = response.ok ? await readText(response.value, watch) : undefined;
    watch?.end();
    if (!response.ok) return response;
    if (text === undefined) {
      const message = `the answer of ${new URL(this.base).origin} broke off`;
      return { ok: false, error: { kind: 'unreachable', message } };
    }
    if (fields === null && response.value.status === 204) return { ok: true, value: undefined as T };
    try {
      const answer: unknown = JSON.parse(text);
      if (hasMembers(answer, { fields, lists }))
        return { ok: true, value: complete(answer as T, response.value.headers) };
    } catch {
      // No JSON.
    }
    return { ok: false, error: notTheService(response.value) };
  }

  /** Repeats a call that the rate limit, or the load, refused as soon as the service says that it may be. */
  private async paced(send: () => Promise<Outcome<Response>>, signal?: AbortSignal): Promise<Outcome<Response>> {
    for (let tries = 0; ; tries++) {
      const response = await send();
      if (response.ok) return response;
      const waitSeconds = rateLimitWait(response.error);
      if (waitSeconds === undefined || tries === RATE_LIMIT_TRIES || signal?.aborted) return response;
      this.onRateLimit?.(waitSeconds, response.error.message);
      await pause(waitSeconds * 1000, signal);
      if (signal?.aborted) return response;
    }
  }
}

function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}

/** How long to wait before a refused call may succeed; undefined where waiting is not the remedy. */
function rateLimitWait(error: ClientError): number | undefined {
  if (error.kind !== 'refused' || error.retryAfterSeconds === undefined) return undefined;
  // 503: too many live streams at the moment.
  if (error.status !== 429 && error.status !== 503) return undefined;
  return error.retryAfterSeconds <= LONGEST_WAIT_SECONDS ? error.retryAfterSeconds : undefined;
}

function withProgress(job: JobState, headers: Headers): JobState {
  const progress = headers.get('X-Job-Progress');
  const [attempt, attempts] = (headers.get('X-Job-Attempt') ?? '').split('/').map(Number);
  return {
    ...job,
    ...(progress !== null && { progress: Number(progress) }),
    ...(attempts > 0 && { attempt: { number: attempt, of: attempts } }),
  };
}

/** Whether a job of this status has ended for good. */
export function isTerminal(status: JobResult['status']): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled';
}

/**
 * Whether an error says nothing of a job, which may go on then: the service fails or is busy, something else answers in its place, or
 * the key is refused, as one that was revoked meanwhile.
 */
export function saysNothing(error: ClientError): boolean {
  return error.kind !== 'refused' || error.status === 429 || error.status >= 500 || needsAnotherKey(error);
}

/** Whether another key is what helps. */
export function needsAnotherKey(error: ClientError): boolean {
  return error.kind === 'refused' && (error.status === 401 || error.status === 403);
}

/** Errors that may be gone at the next poll. */
function isPassing(error: ClientError): boolean {
  return error.kind === 'unreachable' || error.status === 429 || error.status >= 500;
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((done) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      done();
    };
    const timer = setTimeout(finish, ms);
    signal?.addEventListener('abort', finish);
  });
}
