import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { documentHead } from '../contract/api-document.ts';
import type { AppEnv } from '../middleware/context.ts';
import type { Endpoint } from './endpoint.ts';
import { REFERENCE_PAGE, REFERENCE_START, STYLES } from './pages.ts';
import { FOR_GOOD, FOR_MINUTES, file, open, page, send } from './static-files.ts';

/** Files of the reference page, as the Worker's bundle holds them. */
export interface DocsAssets {
  /** Version of swagger-ui; part of the address of its files, which may therefore be cached for good. */
  readonly version: string;
  readonly script: () => Promise<ArrayBuffer>;
  readonly styles: () => Promise<ArrayBuffer>;
  readonly licences: () => Promise<ArrayBuffer>;
}

/**
 * GET /openapi.json, and GET /docs with its files.
 * @param app the service that the document describes, with all that is registered on it by the time of the first request
 */
export function documentation(app: OpenAPIHono<AppEnv>, version: string, assets: DocsAssets): Endpoint[] {
  const folder = `/docs/swagger-ui-${assets.version}`;
  const files: Readonly<Record<string, { readonly type: string; readonly body: () => Promise<ArrayBuffer> }>> = {
    'swagger-ui.js': { type: 'text/javascript; charset=utf-8', body: assets.script },
    'swagger-ui.css': { type: 'text/css; charset=utf-8', body: assets.styles },
    // The script's first line refers to it by this name.
    'swagger-ui-bundle.js.LICENSE.txt': { type: 'text/plain; charset=utf-8', body: assets.licences },
  };
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
    page('/docs', 'getReferencePage', 'Reference page', REFERENCE_PAGE(folder)),
    file('/docs/styles.css', (c) => send(c, 'text/css; charset=utf-8', STYLES, FOR_MINUTES)),
    file('/docs/start.js', (c) => send(c, 'text/javascript; charset=utf-8', REFERENCE_START, FOR_MINUTES)),
    file(`${folder}/{file}`, async (c) => {
      const name = c.req.param('file') ?? '';
      if (!Object.hasOwn(files, name)) return { kind: 'not_found' };
      return send(c, files[name].type, await files[name].body(), FOR_GOOD);
    }),
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
