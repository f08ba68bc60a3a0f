import { type RouteConfig, z } from '@hono/zod-openapi';
import type { AppContext } from '../middleware/context.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

type Answer = (c: AppContext) => Response | Refusal | Promise<Response | Refusal>;

export const FOR_GOOD = 'public, max-age=31536000, immutable';
export const FOR_MINUTES = 'public, max-age=300';

/** Own scripts and styles alone: the pages hold nothing inline and load nothing from elsewhere. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/** An endpoint for everyone, which answers from memory. */
export function open(route: RouteConfig, answer: Answer): Endpoint {
  return endpoint(route, 'public', (c) => () => answer(c));
}

/** @param policy what the page may do beyond showing its own files: further directives of a Content-Security-Policy */
export function page(
  path: string,
  operationId: string,
  summary: string,
  html: string,
  policy: readonly string[] = [],
): Endpoint {
  return open(
    {
      method: 'get',
      path,
      operationId,
      summary,
      responses: { 200: { description: 'A page', content: { 'text/html': { schema: z.string() } } } },
    },
    (c) => {
      c.header('Content-Security-Policy', [...PAGE_POLICY, ...policy].join('; '));
      c.header('Referrer-Policy', 'no-referrer');
      return send(c, 'text/html; charset=utf-8', html, FOR_MINUTES);
    },
  );
}

/** A file of a page; the API document leaves it out. */
export function file(path: string, answer: Answer): Endpoint {
  return open({ method: 'get', path, hide: true, responses: { 200: { description: 'A file' } } }, answer);
}

/** Answers 200 with a body of a media type and how long it may be kept. */
export function send(c: AppContext, type: string, body: ArrayBuffer | string, cacheControl: string): Response {
  c.header('Cache-Control', cacheControl);
  return c.body(body, 200, { 'Content-Type': type });
}
