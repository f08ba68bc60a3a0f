import { z } from '@hono/zod-openapi';
import { headerRefs } from '../contract/api-document.ts';
import { mediaAddressSchema, mediaBodySchema, rawBytesSchema } from '../contract/media.ts';
import { wantedRange } from './byte-range.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { readMediaName } from './media-name.ts';

/** POST /v1/media/output: an address to download a recording from. */
export const createDownload = endpoint(
  {
    method: 'post',
    path: '/v1/media/output',
    operationId: 'createDownload',
    summary: 'Get a download address for a recording',
    request: { body: { required: true, content: { 'application/json': { schema: mediaBodySchema } } } },
    responses: {
      201: { description: 'Where to GET the bytes', content: { 'application/json': { schema: mediaAddressSchema } } },
      ...errorResponses(400, 401, 403, 404, 413, 415),
    },
  },
  'media:read',
  async (c) => {
    const { media } = c.get('services');
    const wanted = await readMediaName(c);
    if (!wanted.ok) return wanted.error;
    const { account } = c.get('principal');
    const address = await media.createDownload(account.id, wanted.name, new URL(c.req.url).origin);
    return address ? () => c.json(address, 201) : { kind: 'not_found' };
  },
);

const FILE_HEADERS = ['Accept-Ranges', 'Content-Disposition', 'ETag'] as const;

/**
 * GET of the address of `createDownload`: the recording's bytes, or a part of them. The ticket in the path is the
 * credential.
 */
export const download = endpoint(
  {
    method: 'get',
    path: '/v1/media/download/{ticket}',
    operationId: 'download',
    summary: 'Download a recording',
    request: {
      params: z.object({ ticket: z.string() }),
      headers: z.object({
        Range: z.string().optional(),
        'If-Range': z.string().optional(),
        'If-None-Match': z.string().optional(),
      }),
    },
    responses: {
      200: {
        description: 'The recording',
        headers: headerRefs(...FILE_HEADERS),
        content: { 'application/octet-stream': { schema: rawBytesSchema } },
      },
      206: {
        description: 'A part of it',
        headers: headerRefs('Content-Range', ...FILE_HEADERS),
        content: { 'application/octet-stream': { schema: rawBytesSchema } },
      },
      304: { description: 'The recording is the one that the client has', headers: headerRefs('ETag') },
      ...errorResponses(401, 404, 416),
    },
  },
  'public',
  async (c) => {
    const { media } = c.get('services');
    const found = await media.findDownload(c.req.param('ticket') ?? '');
    if (!found.ok) return { kind: found.error.kind };
    const { name, sizeBytes, etag, open } = found.value;
    if (namesEtag(c.req.header('If-None-Match'), etag)) return () => c.body(null, 304, { ETag: etag });
    const pin = c.req.header('If-Range');
    // The recording was replaced since the client began: a part of the new one would not fit what it has.
    const wanted = wantedRange(pin === undefined || pin === etag ? c.req.header('Range') : undefined, sizeBytes);
    if (wanted.kind === 'unsatisfiable') return { kind: 'range_not_satisfiable', sizeBytes };
    const { offset, length } = wanted.kind === 'part' ? wanted : { offset: 0, length: sizeBytes };
    const headers: Record<string, string> = {
      'Content-Type': 'application/octet-stream',
      'Content-Length': String(length),
      'Content-Disposition': `attachment; filename="${name.split('/').findLast((part) => part !== '') ?? 'recording'}"`,
      'Accept-Ranges': 'bytes',
      ETag: etag,
    };
    if (wanted.kind === 'part') headers['Content-Range'] = `bytes ${offset}-${offset + length - 1}/${sizeBytes}`;
    const status = wanted.kind === 'part' ? 206 : 200;
    return () => {
      if (c.req.method === 'HEAD') return c.body(null, status, headers);
      return c.body(open({ offset, length }), status, headers);
    };
  },
);

/** Whether an If-None-Match header names what is there (RFC 9110 §13.1.2), so that there is nothing to send. */
function namesEtag(header: string | undefined, etag: string): boolean {
  const names = header?.split(',').map((name) => name.trim().replace(/^W\//, '')) ?? [];
  return names.includes(etag) || (names.length === 1 && names[0] === '*');
}
