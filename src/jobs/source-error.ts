/** Why a recording cannot be read. `unreachable`, `timeout` and `server_error` may be temporary. */
export type SourceErrorKind =
  | 'invalid_url'
  | 'private_address'
  | 'unreachable'
  | 'timeout'
  | 'too_slow'
  | 'server_error'
  | 'http_status'
  | 'too_many_redirects'
  | 'too_large'
  | 'empty'
  | 'web_page'
  /** A live stream of a radio station, which continues forever. */
  | 'endless'
  | 'changed'
  | 'incomplete'
  /** The stored text of a `data:` URL was deleted. */
  | 'gone'
  /** The account has no such upload. */
  | 'not_found';

/** Whether a retry may succeed. */
export const isTemporary = (kind: SourceErrorKind): boolean =>
  kind === 'unreachable' || kind === 'timeout' || kind === 'server_error';

/**
 * `message` is a sentence for the caller. It may contain the host of the URL, but never the query or credentials.
 */
export interface SourceError {
  readonly kind: SourceErrorKind;
  readonly message: string;
}

/** A read that failed permanently, after the retries. */
export class SourceReadError extends Error {
  constructor(readonly error: SourceError) {
    super(error.message);
    this.name = 'SourceReadError';
  }
}
