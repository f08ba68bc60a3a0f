/** No answer, a refusal, an answer of another program, a failed job or a canceled job. */
export type RollcallErrorKind = 'unreachable' | 'refused' | 'unexpected' | 'failed' | 'canceled';

export interface RollcallErrorDetails {
  /** HTTP status of a refusal. */
  readonly status?: number;
  readonly requestId?: string;
  readonly retryAfterSeconds?: number;
  /** Faulty fields of a request, with status 400. */
  readonly fields?: readonly { readonly field: string; readonly message: string }[];
  /** Job that failed or was canceled. */
  readonly jobId?: string;
  /** Machine-readable reason of a job that failed. */
  readonly code?: string;
}

/** Thrown by the calls of `Rollcall` for faults of the network, the service or a job. */
export class RollcallError extends Error {
  override readonly name = 'RollcallError';

  constructor(
    readonly kind: RollcallErrorKind,
    message: string,
    readonly details: RollcallErrorDetails = {},
  ) {
    super(message);
  }
}
