import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { documentHead } from '../contract/api-document.ts';
import type { AppEnv } from '../middleware/context.ts';
import type { Endpoint } from './endpoint.ts';
import { FOR_GOOD, FOR_MINUTES, file, open, page, send } from './static-files.ts';

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
 * @param app the service that the document describes, with all that is registered on it by the time of the first request
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

/** The document with the asking request's origin as the server. Made once, since it holds every schema of the service. */
function cachedDocument(app: OpenAPIHono<AppEnv>, version: string): (origin: string) => string {
  let made: ReturnType<typeof apiDocument> | undefined;
  let last = { origin: '', text: '' };
  return (origin) => {
    made ??= apiDocument(app, version);
    if (last.origin !== origin) last = { origin, text: JSON.stringify({ ...made, servers: [{ url: origin }] }) };
    return last.text;
  };
}
