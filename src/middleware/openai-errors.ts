import type { OpenAiError } from '../contract/openai.ts';
import type { AppContext, AppMiddleware } from './context.ts';

export type OpenAiErrorStatus = 400 | 401 | 402 | 403 | 404 | 405 | 409 | 413 | 415 | 416 | 426 | 429 | 500 | 503 | 504;

/** Has all errors of an address answered in OpenAI's form. Must come before everything that may refuse. */
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

/** The answer with that body. OpenAI's clients repeat a request after a 5xx, which would make another job. */
export function answerOpenAiError(c: AppContext, status: OpenAiErrorStatus, body: OpenAiError): Response {
  if (status === 503 || status === 504) c.header('X-Should-Retry', 'false');
  return c.json(body, status);
}
