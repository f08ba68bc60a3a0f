import type { ApiError, FieldError, ValidationError } from '../contract/errors.ts';
import type { OpenAiError } from '../contract/openai.ts';
import type { Scope } from '../jobs/app-services.ts';
import { MIN_CREDIT_SECONDS } from '../jobs/end-job.ts';
import type { AppContext, AppMiddleware } from './context.ts';

/** The end of a stream is unknown; an earlier retry would hardly succeed. */
const STREAMS_RETRY_SECONDS = 10;
/** Time in which an overload may end. */
const OVERLOAD_RETRY_SECONDS = 5;

const UNAVAILABLE_RETRY_SECONDS = 10;

/** Message of a 500. */
export const INTERNAL_ERROR = 'The service failed; its log has this request id.';

/** Reasons to refuse a request. */
export type Refusal =
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] }
  | { readonly kind: 'unauthorized'; readonly reason: 'missing' | 'invalid' }
  | { readonly kind: 'bad_ticket' | 'expired_ticket' | 'bad_stream_token' }
  | { readonly kind: 'payment_required' }
  | { readonly kind: 'missing_scope'; readonly scope: Scope }
  | { readonly kind: 'live_not_enabled' | 'origin_not_allowed' | 'overloaded' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'idempotency_conflict' | 'no_analysis' }
  | { readonly kind: 'body_too_large'; readonly maxBytes: number }
  | { readonly kind: 'media_type'; readonly wanted?: string }
  | { readonly kind: 'too_many_requests'; readonly retryAfterSeconds: number }
  | { readonly kind: 'too_many_streams'; readonly maxStreams: number }
  | { readonly kind: 'range_not_satisfiable'; readonly sizeBytes: number }
  | { readonly kind: 'upgrade_required' | 'websocket_version' }
  | { readonly kind: 'unavailable' | 'internal' };

/** The answer to a refused request, in the error format of the contract or of OpenAI. */
export function refuse(c: AppContext, refusal: Refusal): Response {
  switch (refusal.kind) {
    case 'invalid': {
      if (c.get('errorForm') === 'openai') {
        const faults = refusal.errors.map(({ field, message }) => `${field} ${message.replace(/\.$/, '')}`);
        const message = `Invalid request: ${faults.join('; ')}.`;
        return answerOpenAiError(c, 400, openAiErrorBody(400, message, { param: refusal.errors[0]?.field }));
      }
      const body: ValidationError = { message: 'Invalid request', errors: [...refusal.errors] };
      return c.json(body, 400);
    }
    case 'unauthorized':
      // RFC 6750 §3: the challenge names an error only if a credential was sent.
      c.header(
        'WWW-Authenticate',
        `Bearer realm="rollcall"${refusal.reason === 'invalid' ? ', error="invalid_token"' : ''}`,
      );
      return apiError(
        c,
        401,
        refusal.reason === 'missing'
          ? 'Send an API key: Authorization: Bearer <key>.'
          : 'The API key is wrong, was revoked or has expired.',
      );
    case 'bad_ticket':
      return apiError(c, 401, 'The address is not valid.');
    case 'expired_ticket':
      return apiError(c, 401, 'The address has expired; ask for a new one.');
    case 'bad_stream_token':
      return apiError(c, 401, 'The token is unknown, already used or expired. Open another stream (POST /v1/live).');
    case 'payment_required':
      return apiError(
        c,
        402,
        `The account has no subscription and less than ${MIN_CREDIT_SECONDS} s of credit ` +
          'beyond its unfinished jobs and streams.',
      );
    case 'missing_scope':
      return apiError(c, 403, `The API key lacks the scope ${refusal.scope}.`);
    case 'live_not_enabled':
      return apiError(c, 403, 'Live streams are not enabled: the models in use are too slow for them.');
    case 'origin_not_allowed':
      return apiError(c, 403, 'The API key that made the stream allows connections from other origins only.');
    case 'overloaded':
      c.header('Retry-After', String(OVERLOAD_RETRY_SECONDS));
      return apiError(c, 503, `Too many live streams at the moment; try again in ${OVERLOAD_RETRY_SECONDS} s.`);
    case 'not_found':
      return apiError(c, 404, 'Not found.');
    case 'method_not_allowed':
      c.header('Allow', refusal.allow);
      return apiError(c, 405, `Method not allowed; this address takes ${refusal.allow}.`);
    case 'idempotency_conflict':
      return apiError(c, 409, 'This Idempotency-Key was used with another request.');
    case 'no_analysis':
      return apiError(c, 409, 'Only a diarize job that succeeded and whose analysis is still stored can be recounted.');
    case 'body_too_large':
      return apiError(c, 413, `The body is larger than ${sizeText(refusal.maxBytes)}, the maximum for this address.`);
    case 'media_type':
      return apiError(
        c,
        415,
        refusal.wanted === undefined
          ? 'The body must be JSON (Content-Type: application/json).'
          : `The body must be ${refusal.wanted}.`,
      );
    case 'too_many_requests':
      c.header('Retry-After', String(refusal.retryAfterSeconds));
      return apiError(c, 429, `Too many requests; try again in ${refusal.retryAfterSeconds} s.`);
    case 'too_many_streams':
      c.header('Retry-After', String(STREAMS_RETRY_SECONDS));
      return apiError(
        c,
        429,
        `The account has ${refusal.maxStreams} open live streams, the maximum. Unconnected ones end after ten minutes.`,
      );
    case 'upgrade_required':
      c.header('Upgrade', 'websocket');
      return apiError(c, 426, 'This address is for WebSocket connections (Upgrade: websocket).');
    case 'websocket_version':
      c.header('Sec-WebSocket-Version', '13');
      return apiError(c, 426, 'This address speaks version 13 of the WebSocket protocol (Sec-WebSocket-Version: 13).');
    case 'range_not_satisfiable':
      c.header('Content-Range', `bytes */${refusal.sizeBytes}`);
      return apiError(c, 416, `The requested range is outside the file of ${refusal.sizeBytes} bytes.`);
    case 'unavailable':
      c.header('Retry-After', String(UNAVAILABLE_RETRY_SECONDS));
      return apiError(c, 503, 'The service cannot take jobs now.');
    case 'internal':
      return apiError(c, 500, INTERNAL_ERROR);
  }
}

/** Size in binary units, as in the documentation. */
function sizeText(bytes: number): string {
  const mebibytes = bytes / 1024 ** 2;
  return mebibytes < 1024 ? `${mebibytes} MiB` : `${mebibytes / 1024} GiB`;
}

type ApiErrorStatus = 401 | 402 | 403 | 404 | 405 | 409 | 413 | 415 | 416 | 426 | 429 | 500 | 503;

function apiError(c: AppContext, status: ApiErrorStatus, message: string): Response {
  if (c.get('errorForm') === 'openai') return answerOpenAiError(c, status, openAiErrorBody(status, message));
  const body: ApiError = { requestId: c.get('requestId'), message };
  return c.json(body, status);
}

export type OpenAiErrorStatus = 400 | 401 | 402 | 403 | 404 | 405 | 409 | 413 | 415 | 416 | 426 | 429 | 500 | 503 | 504;

/** Answers all errors of an address in OpenAI's form. Must run before every middleware that may refuse. */
export const answerErrorsAsOpenAi: AppMiddleware = async (c, next) => {
  c.set('errorForm', 'openai');
  return next();
};

const INVALID = 'invalid_request_error';
/** Types and codes that OpenAI's clients know, by status. */
const KINDS: Partial<Record<OpenAiErrorStatus, readonly [type: string, code: string | null]>> = {
  401: [INVALID, 'invalid_api_key'],
  402: ['insufficient_quota', 'insufficient_quota'],
  403: [INVALID, 'insufficient_permissions'],
  404: [INVALID, 'not_found'],
  405: [INVALID, 'method_not_allowed'],
  413: [INVALID, 'request_too_large'],
  415: [INVALID, 'unsupported_media_type'],
  429: ['requests', 'rate_limit_exceeded'],
  500: ['server_error', 'internal_error'],
};

/** An error's body in OpenAI's form. */
export function openAiErrorBody(
  status: OpenAiErrorStatus,
  message: string,
  { code, param = null }: { readonly code?: string; readonly param?: string | null } = {},
): OpenAiError {
  const [type, usual] = KINDS[status] ?? [status < 500 ? INVALID : 'server_error', null];
  return { error: { message, type, param, code: code ?? usual } };
}

/** Answers an error. OpenAI's clients repeat a request after a 5xx, which would create another job. */
export function answerOpenAiError(c: AppContext, status: OpenAiErrorStatus, body: OpenAiError): Response {
  if (status === 503 || status === 504) c.header('X-Should-Retry', 'false');
  return c.json(body, status);
}
