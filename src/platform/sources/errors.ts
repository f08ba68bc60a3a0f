import type { Result } from '../../audio/types.ts';

/** Why a recording's bytes cannot be had. `unreachable`, `timeout` and `server_error` may pass; the others stay. */
export type SourceErrorKind =
  | 'invalid_url'
  | 'private_address'
  | 'unreachable'
  | 'timeout'
  | 'server_error'
  | 'http_status'
  | 'too_many_redirects'
  | 'too_large'
  | 'empty'
  | 'web_page'
  | 'changed'
  | 'incomplete';

/** `message` is one sentence for the person who sent the address; it names the host at most, never query or credentials. */
export interface SourceError {
  readonly kind: SourceErrorKind;
  readonly message: string;
}

export type SourceResult<T> = Result<T, SourceError>;

/** A read that failed for good, after the retries. */
export class SourceReadError extends Error {
  constructor(readonly error: SourceError) {
    super(error.message);
    this.name = 'SourceReadError';
  }
}

export const refuse = (
  kind: SourceErrorKind,
  message: string,
): { readonly ok: false; readonly error: SourceError } => ({
  ok: false,
  error: { kind, message },
});

/** Whether trying again may help. */
export const isPassing = ({ kind }: SourceError): boolean =>
  kind === 'unreachable' || kind === 'timeout' || kind === 'server_error';

const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: 'bad request',
  401: 'a login is needed',
  403: 'access is forbidden',
  404: 'not found',
  405: 'method not allowed',
  407: 'a proxy login is needed',
  408: 'request timeout',
  410: 'gone',
  429: 'too many requests',
  451: 'unavailable for legal reasons',
  500: 'internal error',
  502: 'bad gateway',
  503: 'unavailable',
  504: 'gateway timeout',
};

/** The error for an answer that is not a success. */
export function statusError(host: string, status: number): SourceError {
  const words = STATUS_WORDS[status] ? ` (${STATUS_WORDS[status]})` : '';
  const kind = status >= 500 || status === 429 || status === 408 ? 'server_error' : 'http_status';
  return { kind, message: `The server ${host} answered ${status}${words} instead of the recording.` };
}

export function tooLarge(maxBytes: number): SourceError {
  const mebibytes = maxBytes / 1024 ** 2;
  const limit = mebibytes >= 1024 ? `${mebibytes / 1024} GiB` : `${Math.floor(mebibytes)} MiB`;
  return { kind: 'too_large', message: `The recording is larger than the limit of ${limit}.` };
}

export const EMPTY: SourceError = { kind: 'empty', message: 'The file is empty.' };
