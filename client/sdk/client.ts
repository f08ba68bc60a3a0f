import type {
  ClientError,
  DiarizeOptions,
  IdentifyOptions,
  JobCreated,
  JobResult,
  JobState,
  Outcome,
  VoiceprintOptions,
} from './types.ts';

export interface ClientOptions {
  /** Address of the service, without `/v1`. */
  readonly url: string;
  /** API key, sent as bearer token. */
  readonly key: string;
  /** Longest wait for one answer, uploads excepted. */
  readonly timeoutMs?: number;
}

export interface WaitOptions {
  readonly pollMs?: number;
  readonly signal?: AbortSignal;
  /** Called after each poll. */
  readonly onUpdate?: (job: JobState) => void;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const FIRST_POLL_MS = 200;
const SLOWEST_POLL_MS = 2000;
/** How many polls in a row may fail before `wait` gives up: a service may be restarted meanwhile. */
const POLL_TRIES = 5;

/** Typed client of the service over fetch. No method throws for what the network or the service does. */
export class RollcallClient {
  private readonly base: string;
  private readonly key: string;
  private readonly timeoutMs: number;

  constructor({ url, key, timeoutMs = DEFAULT_TIMEOUT_MS }: ClientOptions) {
    this.base = `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`;
    this.key = key;
    this.timeoutMs = timeoutMs;
  }

  /** Whether the service is there and takes the key. */
  test(): Promise<Outcome<{ status: string; message: string }>> {
    return this.call('GET', '/test');
  }

  /**
   * Stores a recording under a name of this account for 48 hours.
   *
   * @param name letters, digits and `-_./`, without `media://`
   * @param sizeBytes length of a stream
   * @returns the address to use as `url` of a job
   */
  async upload(
    name: string,
    body: Blob | Uint8Array | ReadableStream<Uint8Array>,
    sizeBytes?: number,
  ): Promise<Outcome<string>> {
    const url = `media://${name}`;
    const ticket = await this.call<{ url: string }>('POST', '/media/input', { url });
    if (!ticket.ok) return ticket;
    const headers: Record<string, string> = sizeBytes === undefined ? {} : { 'Content-Length': String(sizeBytes) };
    // Streams need `duplex`, which the DOM's types do not know.
    const init = { method: 'PUT', body, headers, duplex: 'half' } as RequestInit;
    const stored = await request(ticket.value.url, init);
    if (!stored.ok) return stored;
    await stored.value.body?.cancel();
    return { ok: true, value: url };
  }

  /** Creates a job: one, also when the call or its answer is lost on the way and repeated with the same key. */
  diarize(options: DiarizeOptions, idempotencyKey: string = crypto.randomUUID()): Promise<Outcome<JobCreated>> {
    return this.call('POST', '/diarize', options, { 'Idempotency-Key': idempotencyKey });
  }

  /** As `diarize`, for a voiceprint of one person's recording. */
  voiceprint(options: VoiceprintOptions, idempotencyKey: string = crypto.randomUUID()): Promise<Outcome<JobCreated>> {
    return this.call('POST', '/voiceprint', options, { 'Idempotency-Key': idempotencyKey });
  }

  /** As `diarize`, with names for the speakers whose voiceprints are given. */
  identify(options: IdentifyOptions, idempotencyKey: string = crypto.randomUUID()): Promise<Outcome<JobCreated>> {
    return this.call('POST', '/identify', options, { 'Idempotency-Key': idempotencyKey });
  }

  retrieve(jobId: string): Promise<Outcome<JobState>> {
    return this.call('GET', `/jobs/${encodeURIComponent(jobId)}`, undefined, {}, withProgress);
  }

  /** Polls until the job has succeeded, failed or was canceled; or until the signal, then with the last state seen. */
  async wait(jobId: string, { pollMs, signal, onUpdate }: WaitOptions = {}): Promise<Outcome<JobState>> {
    let pauseMs = pollMs ?? FIRST_POLL_MS;
    let failures = 0;
    for (;;) {
      const job = await this.retrieve(jobId);
      if (job.ok) {
        failures = 0;
        onUpdate?.(job.value);
        if (isTerminal(job.value.status) || signal?.aborted) return job;
      } else if (!isPassing(job.error) || ++failures >= POLL_TRIES || signal?.aborted) {
        return job;
      }
      await pause(pauseMs, signal);
      if (pollMs === undefined) pauseMs = Math.min(SLOWEST_POLL_MS, pauseMs * 1.3);
    }
  }

  private async call<T>(
    method: string,
    path: string,
    body?: unknown,
    extra: Record<string, string> = {},
    complete: (body: T, headers: Headers) => T = (body) => body,
  ): Promise<Outcome<T>> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.key}`, ...extra };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
    const send = () => request(this.base + path, { ...init, signal: AbortSignal.timeout(this.timeoutMs) });
    let response = await send();
    // A kept connection that the service has closed meanwhile fails only when it is used; every call here may be repeated.
    if (!response.ok && response.error.kind === 'unreachable' && response.error.broken) response = await send();
    if (!response.ok) return response;
    try {
      return { ok: true, value: complete((await response.value.json()) as T, response.value.headers) };
    } catch {
      return { ok: false, error: notTheService(response.value) };
    }
  }
}

function withProgress(job: JobState, headers: Headers): JobState {
  const progress = headers.get('X-Job-Progress');
  return progress === null ? job : { ...job, progress: Number(progress) };
}

export function isTerminal(status: JobResult['status']): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled';
}

/** Errors that may be gone at the next poll. */
function isPassing(error: ClientError): boolean {
  return error.kind === 'unreachable' || error.status === 429 || error.status >= 500;
}

async function request(url: string, init: RequestInit): Promise<Outcome<Response>> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    const message = `${new URL(url).origin} ${reasonOf(error)}`;
    return { ok: false, error: { kind: 'unreachable', message, ...(isBroken(error) && { broken: true }) } };
  }
  return response.ok ? { ok: true, value: response } : { ok: false, error: await readError(response) };
}

const BROKEN_CODES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

function isBroken(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
  return BROKEN_CODES.has(cause?.code ?? '');
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'does not answer in time';
  const cause =
    error instanceof Error && error.cause instanceof Error ? (error.cause as Error & { code?: string }) : undefined;
  if (cause?.code === 'ECONNREFUSED') return 'cannot be reached: nothing listens there';
  if (cause?.code === 'ENOTFOUND') return 'cannot be reached: the name is unknown';
  return `cannot be reached: ${cause?.message || (error instanceof Error ? error.message : String(error))}`;
}

async function readError(response: Response): Promise<ClientError> {
  try {
    const body = (await response.json()) as {
      message: string;
      requestId?: string;
      errors?: { field: string; message: string }[];
    };
    if (typeof body.message !== 'string') return notTheService(response);
    const { message, requestId, errors } = body;
    return { kind: 'refused', status: response.status, message, requestId, fields: errors };
  } catch {
    return notTheService(response);
  }
}

function notTheService(response: Response): ClientError {
  const message = `${new URL(response.url).origin} answered ${response.status} with something that is not rollcall's`;
  return { kind: 'unexpected', status: response.status, message };
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
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
