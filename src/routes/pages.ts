import { type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi';
import { documentHead } from '../contract/api-document.ts';
import type { AppContext, AppEnv } from '../middleware/context.ts';
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

/** Files of `/docs`, as the Worker's bundle holds them. */
export interface DocsAssets {
  /** HTML; `{{reference}}` is replaced by the address of the reference's folder. */
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
 * @param app the service that the document describes, with all that is registered on it by the time of the first
 *   request
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
        c.header('Cache-Control', FOR_MINUTES);
        return c.body(document(new URL(c.req.url).origin), 200, { 'Content-Type': 'application/json' });
      },
    ),
    page('/docs', 'getReferencePage', 'Quickstart and reference', html),
    file('/docs/docs.css', (c) => send(c, 'text/css; charset=utf-8', assets.styles, FOR_MINUTES)),
    file('/docs/docs.js', (c) => send(c, 'text/javascript; charset=utf-8', assets.script, FOR_MINUTES)),
    file(`${folder}/reference.js`, async (c) =>
      send(c, 'text/javascript; charset=utf-8', await assets.reference(), FOR_GOOD),
    ),
    file(`${folder}/reference.css`, async (c) =>
      send(c, 'text/css; charset=utf-8', await assets.referenceStyles(), FOR_GOOD),
    ),
  ];
}

/** The document of everything that is registered on the app, with the tags that it uses. */
export function apiDocument(app: OpenAPIHono<AppEnv>, version: string) {
  const document = app.getOpenAPI31Document(documentHead(version));
  const used = new Set(Object.values(document.paths ?? {}).flatMap(tagsOf));
  return { ...document, tags: document.tags?.filter(({ name }) => used.has(name)) };
}

function tagsOf(item: object): string[] {
  return Object.values(item as Record<string, { tags?: string[] }>).flatMap(({ tags = [] }) => tags);
}

/**
 * The document with the asking request's origin as the server. Made once, since it holds every schema of the service.
 */
function cachedDocument(app: OpenAPIHono<AppEnv>, version: string): (origin: string) => string {
  let made: ReturnType<typeof apiDocument> | undefined;
  let last = { origin: '', text: '' };
  return (origin) => {
    made ??= apiDocument(app, version);
    if (last.origin !== origin) last = { origin, text: JSON.stringify({ ...made, servers: [{ url: origin }] }) };
    return last.text;
  };
}

/** The playground, as the Worker's bundle holds it. */
export interface PlaygroundAssets {
  /** HTML with `{{version}}` where the service's version goes. */
  readonly page: string;
  readonly styles: string;
  readonly script: string;
  /** What runs in the browser's audio thread. */
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
    file('/playground/playground.css', (c) => send(c, 'text/css; charset=utf-8', assets.styles, FOR_MINUTES)),
    file('/playground/playground.js', (c) => send(c, SCRIPT, assets.script, FOR_MINUTES)),
    file('/playground/microphone-frames.js', (c) => send(c, SCRIPT, assets.microphoneFrames, FOR_MINUTES)),
    file('/playground/sample.mp3', async (c) => send(c, 'audio/mpeg', await assets.sample(), FOR_MINUTES)),
  ];
}
