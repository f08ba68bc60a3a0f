import { createRoute, type OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import type { Handler } from 'hono';
import { type DocumentedHeader, headerRefs, TAGS, type Tag } from '../contract/api-document.ts';
import { type ApiError, apiErrorSchema, validationErrorSchema } from '../contract/errors.ts';
import { jobCreatedSchema } from '../contract/jobs.ts';
import { openAiErrorSchema } from '../contract/openai.ts';
import type { Scope } from '../jobs/app-services.ts';
import { authenticate, countRequest, limitClient, requireScope } from '../middleware/access.ts';
import type { AppContext, AppEnv, AppMiddleware } from '../middleware/context.ts';
import { answerErrorsAsOpenAi, type Refusal, refuse } from '../middleware/refusals.ts';

const RATE_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

/** Headers of an error at every endpoint. */
const HEADERS_BY_STATUS: Readonly<Record<string, readonly DocumentedHeader[]>> = {
  416: ['Content-Range'],
  426: ['Upgrade', 'Sec-WebSocket-Version'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const TAG_BY_SEGMENT: Readonly<Record<string, Tag>> = {
  diarize: TAGS.jobs,
  voiceprint: TAGS.jobs,
  identify: TAGS.jobs,
  jobs: TAGS.jobs,
  media: TAGS.media,
  live: TAGS.live,
  models: TAGS.openai,
  audio: TAGS.openai,
  test: TAGS.account,
  healthz: TAGS.account,
  usage: TAGS.account,
};

/**
 * The endpoint's entry in the API document: its own description, with the defaults of all endpoints for operation id,
 * tag, response headers and errors. The endpoint's own description takes precedence.
 * @param isPublic whether it needs no key
 * @param isCounted whether its calls count in an account's rate window
 */
export function described<R extends RouteConfig>(route: R, isPublic: boolean, isCounted = !isPublic): RouteConfig {
  const responses: RouteConfig['responses'] = {
    429: apiError('Too many requests'),
    500: apiError('The service failed; the request had no partial effect'),
    ...route.responses,
  };
  return {
    ...route,
    operationId: route.operationId ?? operationId(route.method, route.path),
    tags: route.tags ?? [tagOf(route.path)],
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => {
        if ('$ref' in response) return [status, response];
        const { headers: own } = response;
        if (own !== undefined && isZodObject(own)) return [status, response];
        const headers = { ...headerRefs(...headersOf(status, isPublic, isCounted)), ...own };
        return [status, { ...linksOf(response), ...response, ...exampleOf(response), headers }];
      }),
    ),
  };
}

function apiError(description: string) {
  return { description, content: { 'application/json': { schema: apiErrorSchema } } };
}

/** Link to the operation that reads a created job. */
const JOB_LINK = { links: { job: { operationId: 'getJob', parameters: { jobId: '$response.body#/jobId' } } } };

function linksOf({ content }: { readonly content?: object }): object {
  return jsonSchemaOf(content) === jobCreatedSchema ? JOB_LINK : {};
}

/** An example of each status: a shared example would fit only one of them. */
function exampleOf({ content, description }: { readonly content?: object; readonly description?: string }): object {
  if (jsonSchemaOf(content) !== apiErrorSchema) return {};
  const example: ApiError = { requestId: '5e7ff389-8a0d-4c6f-9a5e-0d6f3c1b2a47', message: `${description}.` };
  return { content: { 'application/json': { schema: apiErrorSchema, example } } };
}

function jsonSchemaOf(content: object | undefined): unknown {
  return (content as Record<string, { schema?: unknown }> | undefined)?.['application/json']?.schema;
}

/** Headers given as a schema are kept unchanged, because no header can be added to them by name. */
function isZodObject(headers: object): boolean {
  return '_zod' in headers;
}

function headersOf(status: string, isPublic: boolean, isCounted: boolean): DocumentedHeader[] {
  const names: DocumentedHeader[] = ['X-Request-Id'];
  names.push(...(HEADERS_BY_STATUS[status] ?? []));
  // Without a valid credential there is no account and no window to report.
  if (status === '401') return isPublic ? names : [...names, 'WWW-Authenticate'];
  return isCounted ? [...names, ...RATE_HEADERS] : names;
}

/** Segments of the address after the version. */
function words(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== 'v1');
}

/** `get /v1/jobs/{jobId}/events` → `getJobsByJobIdEvents`. */
export function operationId(method: string, path: string): string {
  const parts = words(path).map((word) => {
    const name = word.replace(/^\{(.*)\}$/, 'by-$1');
    return name.replace(/(?:^|[^a-zA-Z0-9]+)([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
  });
  return method.toLowerCase() + (parts.join('') || 'Root');
}

function tagOf(path: string): Tag {
  for (const word of words(path)) if (TAG_BY_SEGMENT[word]) return TAG_BY_SEGMENT[word];
  return TAGS.documentation;
}

/**
 * Who may call an endpoint: holders of a key with the scope, holders of any key, or anyone (if there is a credential,
 * it is the address). A counted address names an account; the endpoint's check counts the call in the account's window.
 */
export type Access = Scope | 'any key' | 'counted address' | 'public';

/** The second half of an endpoint: carries the request out and answers it. */
export type Work = () => Response | Refusal | Promise<Response | Refusal>;

/**
 * The first half of an endpoint: checks the request and returns a refusal or the work. The rate limit applies between
 * the halves, so that other faults of the request are reported first.
 */
export type Check = (c: AppContext) => Refusal | Work | Promise<Refusal | Work>;

/** An endpoint: its description in the API document, its access rule and its handler. */
export interface Endpoint {
  readonly route: RouteConfig & { getRoutingPath(): string; readonly hide?: boolean };
  readonly access: Access;
  readonly check: Check;
  /** Set if errors are answered in OpenAI's form. */
  readonly errorForm?: 'openai';
}

const BAD_KEY = 'Bad, missing or revoked key';
/** 401 of an endpoint whose address is the credential. */
const BAD_ADDRESS = 'The address is not valid, or has expired';

const ERROR_DESCRIPTIONS = {
  401: BAD_KEY,
  402: 'No subscription, and not enough credit in addition to that reserved for unfinished jobs and streams',
  403: 'The key lacks the scope',
  404: 'Unknown, or of another account',
  409: 'The Idempotency-Key was used with another request',
  413: 'Body too large',
  415: 'The body is not JSON',
  416: 'The requested range is outside the file',
  426: 'The request is not a WebSocket upgrade, or has another version',
  503: 'The service accepts no jobs or no more live streams at the moment; retry after `Retry-After` seconds',
} as const;
/** Descriptions that differ at OpenAI's addresses or exist only there. */
const OPENAI_DESCRIPTIONS = {
  400: 'Invalid request, or a job that failed because of its input',
  404: 'Unknown',
  415: 'The body is not a form',
  429: 'Too many requests',
  500: 'The service failed',
  503: 'The transcription engine failed; the job has the speakers',
  504: 'The job continues and can be read later',
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

/** Response entries in OpenAI's form, with the errors of every endpoint. */
export function openAiErrorResponses(...statuses: readonly number[]): RouteConfig['responses'] {
  const descriptions: Readonly<Record<number, string>> = { ...ERROR_DESCRIPTIONS, ...OPENAI_DESCRIPTIONS };
  const content = { 'application/json': { schema: openAiErrorSchema } };
  return Object.fromEntries(
    [...statuses, 429, 500].map((status) => [status, { description: descriptions[status] ?? '', content }]),
  );
}

/** Declares an endpoint. The API document names the bearer token of one that needs a key. */
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
 * Content-Type and stop at a syntax error in their own format; the contract requires that bodies without a Content-Type
 * are read and that all faults are reported together.
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
  const withKey = [authenticate, countRequest(path)];
  return access === 'any key' ? withKey : [...withKey, requireScope(access)];
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
      c.get('bodySlot')?.release();
    }
  };
}
