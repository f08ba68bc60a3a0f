import type { RouteConfig } from '@hono/zod-openapi';
import { type DocumentedHeader, headerRefs, TAGS, type Tag } from '../contract/api-document.ts';
import { type ApiError, apiErrorSchema } from '../contract/errors.ts';
import { jobCreatedSchema } from '../contract/jobs.ts';

const RATE_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

/** Headers that an error has wherever it comes from. */
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
 * What the API document says about an endpoint: its own words, and what holds for all of them: an operation id, a tag,
 * the headers of its answers, and the errors that any request can meet. The endpoint's own words win.
 * @param isPublic whether it is called without a key
 * @param isCounted whether its calls count in the window of an account
 */
export function described<R extends RouteConfig>(route: R, isPublic: boolean, isCounted = !isPublic): RouteConfig {
  const responses: RouteConfig['responses'] = {
    429: apiError('Too many requests'),
    500: apiError('The service failed; nothing was done by halves'),
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

/** Where a created job is read. */
const JOB_LINK = { links: { job: { operationId: 'getJob', parameters: { jobId: '$response.body#/jobId' } } } };

function linksOf({ content }: { readonly content?: object }): object {
  return jsonSchemaOf(content) === jobCreatedSchema ? JOB_LINK : {};
}

/** An error that says what its status means: one example for all of them would fit one. */
function exampleOf({ content, description }: { readonly content?: object; readonly description?: string }): object {
  if (jsonSchemaOf(content) !== apiErrorSchema) return {};
  const example: ApiError = { requestId: '5e7ff389-8a0d-4c6f-9a5e-0d6f3c1b2a47', message: `${description}.` };
  return { content: { 'application/json': { schema: apiErrorSchema, example } } };
}

function jsonSchemaOf(content: object | undefined): unknown {
  return (content as Record<string, { schema?: unknown }> | undefined)?.['application/json']?.schema;
}

/** Headers given as a schema are left alone: they cannot be added to by name. */
function isZodObject(headers: object): boolean {
  return '_zod' in headers;
}

function headersOf(status: string, isPublic: boolean, isCounted: boolean): DocumentedHeader[] {
  const names: DocumentedHeader[] = ['X-Request-Id'];
  names.push(...(HEADERS_BY_STATUS[status] ?? []));
  // Without a good credential there is no account whose window could be told.
  if (status === '401') return isPublic ? names : [...names, 'WWW-Authenticate'];
  return isCounted ? [...names, ...RATE_HEADERS] : names;
}

/** The words of the address after the version, without its parameters. */
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
