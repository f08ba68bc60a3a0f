import type { Result } from '../../audio/audio-ports.ts';
import type { SourceError, SourceErrorKind } from '../../jobs/source-error.ts';

export type SourceResult<T> = Result<T, SourceError>;

export const refuse = (
  kind: SourceErrorKind,
  message: string,
): { readonly ok: false; readonly error: SourceError } => ({
  ok: false,
  error: { kind, message },
});

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

/** The recording has more than `maxBytes`. */
export function tooLarge(maxBytes: number): SourceError {
  const mebibytes = maxBytes / 1024 ** 2;
  const limit = mebibytes >= 1024 ? `${mebibytes / 1024} GiB` : `${Math.floor(mebibytes)} MiB`;
  return { kind: 'too_large', message: `The recording is larger than the limit of ${limit}.` };
}

export const CHANGED: SourceError = { kind: 'changed', message: 'The recording changed while it was being processed.' };

/** A radio stream would be copied for hours, until it reaches the size limit. */
export const endless = (host: string): SourceError => ({
  kind: 'endless',
  message: `The server ${host} sends a radio stream, which has no end: record a part of it and send that.`,
});

export const EMPTY: SourceError = { kind: 'empty', message: 'The file is empty.' };

/** A copy or a reader gave up after `timeoutMs`, having received `receivedBytes`. */
export function tooSlow(host: string, receivedBytes: number, timeoutMs: number): SourceError {
  const [mebibytes, minutes] = [receivedBytes / 1024 ** 2, timeoutMs / 60_000];
  return {
    kind: 'too_slow',
    message:
      `The server ${host} sends too slowly: ${mebibytes.toFixed(1)} MiB in ${minutes.toFixed(0)} minutes. ` +
      'Upload the recording (POST /v1/media/input) instead.',
  };
}
