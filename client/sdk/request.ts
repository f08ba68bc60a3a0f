import type { ClientError, Outcome } from './types.ts';

/** Sends one HTTP request; returns every failure as a `ClientError`. */
export async function request(url: string, init: RequestInit): Promise<Outcome<Response>> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    const target = originOf(url) ?? `the address ${url}`;
    const message = `${target} ${reasonOf(error)}`;
    return { ok: false, error: { kind: 'unreachable', message, ...(isBroken(error) && { broken: true }) } };
  }
  return response.ok ? { ok: true, value: response } : { ok: false, error: await readError(response) };
}

/** @returns undefined for an invalid address. Avoids `URL.canParse`, which browsers have only since late 2023. */
export function originOf(url: string): string | undefined {
  try {
    return new URL(url).origin;
  } catch {
    return undefined;
  }
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
  if (cause?.code === 'ECONNREFUSED') return 'cannot be reached: the connection was refused';
  if (cause?.code === 'ENOTFOUND') return 'cannot be reached: the name is unknown';
  return `cannot be reached: ${cause?.message || (error instanceof Error ? error.message : String(error))}`;
}

/** Reads the error from a response that is not a success. */
export async function readError(response: Response): Promise<ClientError> {
  try {
    const body = (await response.json()) as {
      message: string;
      requestId?: string;
      errors?: { field: string; message: string }[];
    };
    if (typeof body.message !== 'string') return unexpectedAnswer(response);
    const { message, requestId, errors } = body;
    const retryAfterSeconds = retryAfterOf(response);
    return {
      kind: 'refused',
      status: response.status,
      message,
      requestId,
      fields: errors,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    };
  } catch {
    return unexpectedAnswer(response);
  }
}

/** Value of the header, seconds. The service sends no dates in it. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('Retry-After');
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The error for an answer that the service cannot have sent: it comes from another program or a proxy. */
export function unexpectedAnswer(response: Response): ClientError {
  const { url, status } = response;
  // A proxy may accept less than the service: 100 MB on Cloudflare.
  const what =
    status === 413
      ? ': a proxy in front of the service refuses a body of this size'
      : ', but the answer is not from rollcall';
  return { kind: 'unexpected', status, message: `${new URL(url).origin} answered ${status}${what}` };
}
