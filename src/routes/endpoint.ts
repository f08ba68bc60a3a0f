import { createRoute, type OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import type { Handler } from 'hono';
import { apiErrorSchema, validationErrorSchema } from '../contract/errors.ts';
import { openAiErrorSchema } from '../contract/openai.ts';
import type { Scope } from '../jobs/app-services.ts';
import { authenticate, requireScope } from '../middleware/auth.ts';
import type { AppContext, AppEnv, AppMiddleware } from '../middleware/context.ts';
import { limitClient } from '../middleware/flood-limits.ts';
import { answerErrorsAsOpenAi } from '../middleware/openai-errors.ts';
import { countRequest } from '../middleware/rate-limit.ts';
import { type Refusal, refuse } from '../middleware/refusals.ts';
import { described } from './describe.ts';

/**
 * Who may call an endpoint: holders of a key with the scope, of any key, or anyone (the address itself is the
 * credential, if there is one). A counted address names an account, in whose window the endpoint's check counts the
 * call.
 */
export type Access = Scope | 'any key' | 'counted address' | 'public';

/** The half of an endpoint that does something and answers. */
export type Work = () => Response | Refusal | Promise<Response | Refusal>;

/**
 * The half of an endpoint that looks at the request: gives what it is refused for, or the work. Between the two halves
 * the rate limit is applied, so that a client hears first what else is wrong with its request.
 */
export type Check = (c: AppContext) => Refusal | Work | Promise<Refusal | Work>;

/** One endpoint: what the API document says about it, who may call it, and what it does. */
export interface Endpoint {
  readonly route: RouteConfig & { getRoutingPath(): string; readonly hide?: boolean };
  readonly access: Access;
  readonly check: Check;
  /** Set where errors are answered in OpenAI's form. */
  readonly errorForm?: 'openai';
}

const BAD_KEY = 'Bad, missing or revoked key';
/** Where the address itself is the credential. */
const BAD_ADDRESS = 'The address is not valid, or has expired';

const ERROR_DESCRIPTIONS = {
  401: BAD_KEY,
  402: 'Neither a subscription nor enough credit beside what unfinished jobs and streams need',
  403: 'The key lacks the scope',
  404: 'Unknown, or of another account',
  409: 'The Idempotency-Key was used with another request',
  413: 'Body too large',
  415: 'The body is not JSON',
  416: 'The file has no such part',
  426: 'The request is no WebSocket upgrade, or of another version',
  503: 'The service takes no jobs, or no more live streams, now; call again after `Retry-After` seconds',
} as const;
/** Where they differ, and those that no other address has. */
const OPENAI_DESCRIPTIONS = {
  400: 'Invalid request, or a job that failed for what it was given',
  404: 'Unknown',
  415: 'The body is no form',
  429: 'Too many requests',
  500: 'The service failed',
  503: 'The transcription engine failed; the job has the speakers',
  504: 'The job goes on and can be read later',
} as const;
type ErrorStatus = keyof typeof ERROR_DESCRIPTIONS;

/** Response entries of the API document for the errors that an endpoint can answer with. */
export function errorResponses(...statuses: readonly (400 | ErrorStatus)[]): RouteConfig['responses'] {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      status === 400
        ? { description: 'Invalid request', content: { 'application/json': { schema: validationErrorSchema } } }
        : { description: ERROR_DESCRIPTIONS[status], content: { 'application/json': { schema: apiErrorSchema } } },
    ]),
  );
}

/** The same in OpenAI's form, with those that any request can meet. */
export function openAiErrorResponses(...statuses: readonly number[]): RouteConfig['responses'] {
  const descriptions: Readonly<Record<number, string>> = { ...ERROR_DESCRIPTIONS, ...OPENAI_DESCRIPTIONS };
  const content = { 'application/json': { schema: openAiErrorSchema } };
  return Object.fromEntries(
    [...statuses, 429, 500].map((status) => [status, { description: descriptions[status] ?? '', content }]),
  );
}

/** Declares an endpoint; one that needs a key wants it as a bearer token, in the API document too. */
export function endpoint(route: RouteConfig, access: Access, check: Check): Endpoint {
  if (needsKey(access)) return { route: createRoute({ security: [{ bearer: [] }], ...route }), access, check };
  const { 401: unauthorized } = route.responses;
  const responses = unauthorized && {
    responses: { ...route.responses, 401: { ...unauthorized, description: BAD_ADDRESS } },
  };
  return { route: createRoute({ security: [], ...route, ...responses }), access, check };
}

/**
 * Registers endpoints and, for each of their paths, the answer to any other method: 405 with `Allow`, 204 to OPTIONS.
 *
 * The handlers read their bodies themselves. The validators that `app.openapi` would install skip a body without a JSON
 * Content-Type and stop at a fault of syntax in their own format; the contract wants such bodies read and all faults
 * told at once.
 */
export function register(app: OpenAPIHono<AppEnv>, endpoints: readonly Endpoint[]): void {
  for (const { route, errorForm } of endpoints) {
    if (errorForm === 'openai') app.use(route.getRoutingPath(), answerErrorsAsOpenAi);
  }
  app.use(limitClient);
  const methodsByPath = new Map<string, { methods: string[]; access: Access }>();
  for (const { route, access, check } of endpoints) {
    if (!route.hide) app.openAPIRegistry.registerPath(described(route, !needsKey(access), access !== 'public'));
    const path = route.getRoutingPath();
    app.on([route.method.toUpperCase()], [path], ...guards(access, path), answer(check));
    const known = methodsByPath.get(path) ?? { methods: [], access };
    known.methods.push(...(route.method === 'get' ? ['GET', 'HEAD'] : [route.method.toUpperCase()]));
    methodsByPath.set(path, known);
  }
  for (const [path, { methods, access }] of methodsByPath) {
    const allow = [...methods, 'OPTIONS'].join(', ');
    if (needsKey(access)) app.use(path, authenticate, countRequest());
    app.all(path, (c) => {
      if (c.req.method !== 'OPTIONS') return refuse(c, { kind: 'method_not_allowed', allow });
      c.header('Allow', allow);
      return c.body(null, 204);
    });
  }
}

function needsKey(access: Access): access is Scope | 'any key' {
  return access !== 'public' && access !== 'counted address';
}

function guards(access: Access, path: string): AppMiddleware[] {
  if (!needsKey(access)) return [];
  const known = [authenticate, countRequest(path)];
  return access === 'any key' ? known : [...known, requireScope(access)];
}

function answer(check: Check): Handler<AppEnv> {
  return async (c) => {
    try {
      const work = await check(c);
      if (typeof work !== 'function') return refuse(c, work);
      const rate = c.get('rate');
      if (rate?.exceeded) return refuse(c, { kind: 'too_many_requests', retryAfterSeconds: rate.resetSeconds });
      const done = await work();
      return done instanceof Response ? done : refuse(c, done);
    } finally {
      c.get('bodyPlace')?.release();
    }
  };
}
