import { randomId } from './id.ts';
import { pause } from './pause.ts';
import { originOf, request, unexpectedAnswer } from './request.ts';
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
  /** Longest wait for the beginning of an answer and for each further chunk; does not apply to uploads. */
  readonly timeoutMs?: number;
  /** Called when the account's rate limit has refused a call, before the client waits and repeats it. */
  readonly onRateLimit?: (waitSeconds: number, why: string) => void;
}

export interface WaitOptions {
  readonly pollMs?: number;
  readonly signal?: AbortSignal;
  /** Polls may fail for this long, because a service may be restarting. */
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
/** More than one, because other clients of the account may use up the next window too. */
const MAX_RATE_LIMIT_REPEATS = 5;
/** Longer than the rate-limit windows of the service. A call that needs a longer wait is returned as refused. */
const LONGEST_WAIT_SECONDS = 120;

export interface ListOptions {
  readonly status?: JobStatus;
  /** Jobs on a page, 1 to 100; 10 by default. */
  readonly limit?: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

const JOB_FIELDS = ['jobId', 'status'] as const;

interface Call<T> {
  /** String members that the answer must have; null if it has no body. */
  readonly fields: readonly string[] | null;
  /** Array members that the answer must have. */
  readonly lists?: readonly string[];
  readonly body?: unknown;
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly complete?: (answer: T, headers: Headers) => T;
  readonly signal?: AbortSignal;
}

/**
 * Typed client of the service over fetch. Methods return faults of the network and the service, and do not throw them.
 */
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

  /** Checks that the service answers and accepts the key. */
  test(): Promise<Outcome<{ status: string; message: string }>> {
    return this.call('GET', '/test', { fields: ['status', 'message'] });
  }

  /**
   * Stores a recording under a name of this account for 48 hours.
   *
   * @param name letters, digits and `-_./`, without `media://`
   * @param body a stream can be sent only once; a function can return another one after a refusal by the rate limit
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
    const ticket = await this.call<{ url: string }>('POST', '/media/input', { body: { url }, fields: ['url'], signal });
    if (!ticket.ok) return ticket;
    const headers: Record<string, string> = sizeBytes === undefined ? {} : { 'Content-Length': String(sizeBytes) };
    // Streams need `duplex`, which the DOM's types lack.
    const init = { method: 'PUT', headers, duplex: 'half', signal } as RequestInit;
    const put = () =>
      send(ticket.value.url, { ...init, body: (typeof body === 'function' ? body() : body) as BodyInit });
    // A stream cannot be sent a second time.
    const stored = body instanceof ReadableStream ? await put() : await this.withRateLimit(put, signal);
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
   * Creates a job. Calls with the same idempotency key create one job, so that a lost call can be repeated.
   *
   * @param signal ends a wait for the rate limit, then no job is created; does not abort a call that was sent
   */
  diarize(options: DiarizeOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/diarize', options, idempotencyKey, signal);
  }

  /** Creates a job that computes the voiceprint of one person's recording; parameters as for `diarize`. */
  voiceprint(options: VoiceprintOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/voiceprint', options, idempotencyKey, signal);
  }

  /** Creates a job that diarizes and names the speakers of the given voiceprints; parameters as for `diarize`. */
  identify(options: IdentifyOptions, idempotencyKey?: string, signal?: AbortSignal): Promise<Outcome<JobCreated>> {
    return this.createJob('/identify', options, idempotencyKey, signal);
  }

  /**
   * Creates a live stream; `openLiveStream` (client/live) also connects to it. If the answer is lost and the call
   * repeated, the first stream ends when its address expires, and is not billed.
   *
   * @param signal as for `diarize`
   */
  createLive(options: LiveOptions = {}, signal?: AbortSignal): Promise<Outcome<LiveCreated>> {
    return this.call('POST', '/live', { body: options, fields: ['id', 'url'], signal });
  }

  /** Reads the current state of a live stream of the account. */
  readLive(id: string): Promise<Outcome<LiveState>> {
    return this.call('GET', `/live/${encodeURIComponent(id)}`, { fields: ['id', 'status'] });
  }

  /**
   * Reads the current state of a job, with its output after its end.
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

  /** Cancels a job; a canceled job is not billed. Returns the state of a job that had already ended. */
  cancel(jobId: string): Promise<Outcome<JobState>> {
    return this.call('POST', `/jobs/${encodeURIComponent(jobId)}/cancel`, { fields: JOB_FIELDS });
  }

  /**
   * Deletes a job with all its data, even while it runs. If the answer is lost, the repeated call is refused with 404.
   */
  remove(jobId: string): Promise<Outcome<undefined>> {
    return this.call('DELETE', `/jobs/${encodeURIComponent(jobId)}`, { fields: null });
  }

  /** A page of the account's jobs, the newest first. */
  list({ status, limit, cursor }: ListOptions = {}): Promise<Outcome<JobList>> {
    return this.call('GET', `/jobs${queryOf({ status, limit, cursor })}`, { fields: [], lists: ['items'] });
  }

  /** Billed usage by UTC day and kind; the last 30 days by default. Bounds are dates or datetimes. */
  usage({ from, to }: { readonly from?: string; readonly to?: string } = {}): Promise<Outcome<Usage>> {
    return this.call('GET', `/usage${queryOf({ from, to })}`, { fields: ['from', 'to'], lists: ['days'] });
  }

  /**
   * Creates an address from which the recording uploaded under this name can be downloaded without a key.
   *
   * @param name without `media://`
   */
  async downloadUrl(name: string): Promise<Outcome<string>> {
    const body = { url: `media://${name}` };
    const ticket = await this.call<{ url: string }>('POST', '/media/output', { body, fields: ['url'] });
    return ticket.ok ? { ok: true, value: ticket.value.url } : ticket;
  }

  /** Address of a job's output as a file; takes `?format=`. Needs the key, like all of the API. */
  outputUrl(jobId: string): string {
    return `${this.base}/jobs/${encodeURIComponent(jobId)}/output`;
  }

  /** Polls until the job has ended or the signal aborts; returns the last state received. */
  async wait(jobId: string, options: WaitOptions = {}): Promise<Outcome<JobState>> {
    const { pollMs, signal, patienceMs = DEFAULT_PATIENCE_MS, onUpdate, onTrouble } = options;
    const sinceMs = performance.now();
    let failingSinceMs: number | undefined;
    let lastState: Outcome<JobState> | undefined;
    for (;;) {
      const job = await this.retrieve(jobId, signal);
      if (job.ok) {
        lastState = job;
        failingSinceMs = undefined;
        onUpdate?.(job.value);
        if (isTerminal(job.value.status) || signal?.aborted) return job;
      } else if (signal?.aborted) {
        return lastState ?? job;
      } else {
        // Starts at the first failed poll: the last answer may be old if polls are rare or the machine has slept.
        failingSinceMs ??= performance.now();
        if (!isTemporary(job.error) || performance.now() - failingSinceMs > patienceMs) return job;
        onTrouble?.(job.error);
      }
      // The result comes at most a tenth of the job's time late.
      const tenthMs = (performance.now() - sinceMs) / 10;
      await pause(pollMs ?? Math.min(SLOWEST_POLL_MS, Math.max(FIRST_POLL_MS, tenthMs)), signal);
    }
  }

  private createJob(
    path: string,
    body: unknown,
    idempotencyKey: string = randomId(),
    signal: AbortSignal | undefined,
  ): Promise<Outcome<JobCreated>> {
    const extraHeaders = { 'Idempotency-Key': idempotencyKey };
    return this.call('POST', path, { body, extraHeaders, fields: ['jobId'], signal });
  }

  private async call<T>(
    method: string,
    path: string,
    { body, extraHeaders, fields, lists, complete = (answer) => answer, signal }: Call<T>,
  ): Promise<Outcome<T>> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.key}`, ...extraHeaders };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
    let watch: Watch | undefined;
    const send = () => {
      watch?.end();
      // Only a read may be aborted after it was sent: a change may have taken effect.
      watch = new Watch(this.timeoutMs, method === 'GET' ? signal : undefined);
      return request(this.base + path, { ...init, signal: watch.signal });
    };
    const response = await this.withRateLimit(async () => {
      const first = await send();
      // A kept-alive connection that the service has closed fails at its next use. Every call here is safe to repeat.
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
      if (fields !== null && hasMembers(answer, fields, lists)) {
        return { ok: true, value: complete(answer as T, response.value.headers) };
      }
    } catch {
      // No JSON.
    }
    return { ok: false, error: unexpectedAnswer(response.value) };
  }

  /** Repeats a call that the service refused for the rate limit or its load, after the Retry-After. */
  private async withRateLimit(
    send: () => Promise<Outcome<Response>>,
    signal?: AbortSignal,
  ): Promise<Outcome<Response>> {
    for (let repeats = 0; ; repeats++) {
      const response = await send();
      if (response.ok) return response;
      const waitSeconds = rateLimitWait(response.error);
      if (waitSeconds === undefined || repeats === MAX_RATE_LIMIT_REPEATS || signal?.aborted) return response;
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

function hasMembers(answer: unknown, fields: readonly string[], lists: readonly string[] = []): boolean {
  if (typeof answer !== 'object' || answer === null) return false;
  const members = answer as Readonly<Record<string, unknown>>;
  return (
    fields.every((field) => typeof members[field] === 'string') && lists.every((list) => Array.isArray(members[list]))
  );
}

/** Seconds after which a refused call may succeed; undefined for other refusals and for a longer wait. */
function rateLimitWait(error: ClientError): number | undefined {
  if (error.kind !== 'refused' || error.retryAfterSeconds === undefined) return undefined;
  // 503: too many live streams.
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

/** Whether a job with this status has ended. */
export function isTerminal(status: JobResult['status']): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled';
}

/**
 * Whether a job may continue in spite of this error: the service fails or is busy, another program answers, or the key
 * is refused, for example after its revocation.
 */
export function mayJobContinue(error: ClientError): boolean {
  return error.kind !== 'refused' || error.status === 429 || error.status >= 500 || isKeyRefused(error);
}

/** Whether the key is wrong, or lacks the scope. */
export function isKeyRefused(error: ClientError): boolean {
  return error.kind === 'refused' && (error.status === 401 || error.status === 403);
}

/** Whether the next poll may succeed. */
function isTemporary(error: ClientError): boolean {
  return error.kind === 'unreachable' || error.status === 429 || error.status >= 500;
}
