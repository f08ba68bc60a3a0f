/** Why a recording's bytes cannot be had. `unreachable`, `timeout` and `server_error` may pass; the others stay. */
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
  /** The stored text of a `data:` URL is no longer there. */
  | 'gone'
  /** The account has no such upload. */
  | 'not_found';

/** Faults that another try may not meet. */
export const isPassing = (kind: SourceErrorKind): boolean =>
  kind === 'unreachable' || kind === 'timeout' || kind === 'server_error';

/**
 * `message` is one sentence for the person who sent the address; it names the host at most, never query or credentials.
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
