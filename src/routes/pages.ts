import { type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi';
import { documentHead } from '../contract/api-document.ts';
import type { AppContext, AppEnv } from '../middleware/context.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

type Answer = (c: AppContext) => Response | Refusal | Promise<Response | Refusal>;

export const CACHE_PERMANENTLY = 'public, max-age=31536000, immutable';
export const CACHE_FOR_MINUTES = 'public, max-age=300';

/** Only own scripts and styles: pages have no inline code and load nothing from other origins. */
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

/** A public endpoint that answers from memory. */
export function open(route: RouteConfig, answer: Answer): Endpoint {
  return endpoint(route, 'public', (c) => () => answer(c));
}

/** @param policy additional directives of the page's Content-Security-Policy */
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
      return send(c, 'text/html; charset=utf-8', html, CACHE_FOR_MINUTES);
    },
  );
}

/** A file of a page; the API document leaves it out. */
export function file(path: string, answer: Answer): Endpoint {
  return open({ method: 'get', path, hide: true, responses: { 200: { description: 'A file' } } }, answer);
}

/** Answers 200 with a media type and a caching rule. */
export function send(c: AppContext, type: string, body: ArrayBuffer | string, cacheControl: string): Response {
  c.header('Cache-Control', cacheControl);
  return c.body(body, 200, { 'Content-Type': type });
}

/** Files of `/docs` in the Worker's bundle. */
export interface DocsAssets {
  /** HTML; `{{reference}}` is replaced with the address of the reference's folder. */
  readonly page: string;
  readonly styles: string;
  readonly script: string;
  /** Part of the address of the reference's files, which may therefore be cached permanently. */
  readonly referenceVersion: string;
  readonly reference: () => Promise<ArrayBuffer>;
  readonly referenceStyles: () => Promise<ArrayBuffer>;
}

/**
 * GET /openapi.json, and GET /docs with its files.
 * @param app the described service, with all endpoints that are registered before the first request
 */
export function documentation(app: OpenAPIHono<AppEnv>, version: string, assets: DocsAssets): Endpoint[] {
  const folder = `/docs/scalar-${assets.referenceVersion}`;
  const html = assets.page.replaceAll('{{reference}}', folder);
  const document = cachedDocument(app, version);
  return [
    open(
      {
        method: 'get',
        path: '/openapi.json',
        operationId: 'getApiDocument',
        summary: 'The API as OpenAPI 3.1',
        responses: {
          200: {
            description: 'This document',
            content: { 'application/json': { schema: z.object({ openapi: z.string() }).openapi('ApiDocument') } },
          },
        },
      },
      (c) => {
        c.header('Cache-Control', CACHE_FOR_MINUTES);
        return c.body(document(new URL(c.req.url).origin), 200, { 'Content-Type': 'application/json' });
      },
    ),
    page('/docs', 'getReferencePage', 'Quickstart and reference', html),
    file('/docs/docs.css', (c) => send(c, 'text/css; charset=utf-8', assets.styles, CACHE_FOR_MINUTES)),
    file('/docs/docs.js', (c) => send(c, 'text/javascript; charset=utf-8', assets.script, CACHE_FOR_MINUTES)),
    file(`${folder}/reference.js`, async (c) =>
      send(c, 'text/javascript; charset=utf-8', await assets.reference(), CACHE_PERMANENTLY),
    ),
    file(`${folder}/reference.css`, async (c) =>
      send(c, 'text/css; charset=utf-8', await assets.referenceStyles(), CACHE_PERMANENTLY),
    ),
  ];
}

/** The document of all endpoints of the app, with the tags in use. */
export function apiDocument(app: OpenAPIHono<AppEnv>, version: string) {
  const document = app.getOpenAPI31Document(documentHead(version));
  const used = new Set(Object.values(document.paths ?? {}).flatMap(tagsOf));
  return { ...document, tags: document.tags?.filter(({ name }) => used.has(name)) };
}

function tagsOf(item: object): string[] {
  return Object.values(item as Record<string, { tags?: string[] }>).flatMap(({ tags = [] }) => tags);
}

/** The document with the origin of the request as the server. Built once, because it has every schema. */
function cachedDocument(app: OpenAPIHono<AppEnv>, version: string): (origin: string) => string {
  let made: ReturnType<typeof apiDocument> | undefined;
  let last = { origin: '', text: '' };
  return (origin) => {
    made ??= apiDocument(app, version);
    if (last.origin !== origin) last = { origin, text: JSON.stringify({ ...made, servers: [{ url: origin }] }) };
    return last.text;
  };
}

/** Files of the playground in the Worker's bundle. */
export interface PlaygroundAssets {
  /** HTML; `{{version}}` is replaced with the service's version. */
  readonly page: string;
  readonly styles: string;
  readonly script: string;
  /** Script for the browser's audio thread. */
  readonly microphoneFrames: string;
  /** Sample recording, MP3. */
  readonly sample: () => Promise<ArrayBuffer>;
}

const SCRIPT = 'text/javascript; charset=utf-8';

/**
 * GET /: the playground with its files. It plays a local recording from the page's memory (`blob:`), an upload from the
 * service, and a recording on the web from its address.
 */
export function playground(version: string, assets: PlaygroundAssets): Endpoint[] {
  const html = assets.page.replace('{{version}}', version);
  return [
    page('/', 'getPlayground', 'Playground', html, ["media-src 'self' blob: https: http:"]),
    file('/playground/playground.css', (c) => send(c, 'text/css; charset=utf-8', assets.styles, CACHE_FOR_MINUTES)),
    file('/playground/playground.js', (c) => send(c, SCRIPT, assets.script, CACHE_FOR_MINUTES)),
    file('/playground/microphone-frames.js', (c) => send(c, SCRIPT, assets.microphoneFrames, CACHE_FOR_MINUTES)),
    file('/playground/sample.mp3', async (c) => send(c, 'audio/mpeg', await assets.sample(), CACHE_FOR_MINUTES)),
  ];
}
