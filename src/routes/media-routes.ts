import { z } from '@hono/zod-openapi';
import { headerRefs } from '../contract/api-document.ts';
import { mediaAddressSchema, mediaBodySchema, parseMediaBody, rawBytesSchema } from '../contract/media.ts';
import { RECORDING_MAX_BYTES } from '../jobs/app-services.ts';
import { countAddressCall } from '../middleware/access.ts';
import type { AppContext } from '../middleware/context.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { endpoint, errorResponses } from './endpoint.ts';

/** POST /v1/media/input: an address to upload a recording to. */
export const createUpload = endpoint(
  {
    method: 'post',
    path: '/v1/media/input',
    operationId: 'createUpload',
    summary: 'Get an upload address for a recording',
    request: { body: { required: true, content: { 'application/json': { schema: mediaBodySchema } } } },
    responses: {
      201: { description: 'Where to PUT the bytes', content: { 'application/json': { schema: mediaAddressSchema } } },
      ...errorResponses(400, 401, 403, 413, 415),
    },
  },
  'media:write',
  async (c) => {
    const { media } = c.get('services');
    const wanted = await readMediaName(c);
    if (!wanted.ok) return wanted.error;
    const { account } = c.get('principal');
    return async () => c.json(await media.createUpload(account.id, wanted.name, new URL(c.req.url).origin), 201);
  },
);

const TOO_LARGE: Refusal = { kind: 'body_too_large', maxBytes: RECORDING_MAX_BYTES };
const PART = invalid('Content-Range', 'must be absent: send the whole recording');
const EMPTY = invalid('body', 'is empty');
const SLOW = invalid(
  'body',
  'came too slowly: without a Content-Length, at least 8 KiB/s and no pause of more than 30 s',
);
const RETRY_SECONDS = 5;

/** PUT to the address of `createUpload`: the raw bytes of the recording. The ticket in the path is the credential. */
export const upload = endpoint(
  {
    method: 'put',
    path: '/v1/media/upload/{ticket}',
    operationId: 'upload',
    summary: 'Upload a recording',
    request: {
      params: z.object({ ticket: z.string() }),
      body: {
        required: true,
        description: 'The raw bytes, with any Content-Type or none',
        content: { 'application/octet-stream': { schema: rawBytesSchema } },
      },
    },
    responses: { 200: { description: 'Stored' }, ...errorResponses(400, 401, 413) },
  },
  'counted address',
  async (c) => {
    const found = await c.get('services').media.findUpload(c.req.param('ticket') ?? '');
    if (!found.ok) return { kind: found.error.kind };
    const { accountId, rateLimits, store } = found.value;
    // Without a limit, one address could fill the bucket: every PUT stores an object for 48 hours.
    await countAddressCall(c, accountId, rateLimits.post);

    const declared = c.req.header('Content-Length');
    const contentLength = declared !== undefined && /^\d+$/.test(declared) ? Number(declared) : undefined;
    if (contentLength !== undefined && contentLength > RECORDING_MAX_BYTES) return TOO_LARGE;
    // RFC 9110 §14.5: storing a partial body as a complete one would overwrite the recording.
    if (c.req.header('Content-Range') !== undefined) return PART;
    const { body } = c.req.raw;
    if (!body || contentLength === 0) return EMPTY;
    return async () => {
      const stored = await store(body, contentLength);
      if (stored.ok) return c.body(null, 200);
      switch (stored.error.kind) {
        case 'too_large':
          return TOO_LARGE;
        case 'empty':
          return EMPTY;
        case 'too_slow':
          return SLOW;
        case 'no_place':
          return { kind: 'too_many_requests', retryAfterSeconds: RETRY_SECONDS };
      }
    };
  },
);

function invalid(field: string, message: string): Refusal {
  return { kind: 'invalid', errors: [{ field, message }] };
}

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
 * GET of the address of `createDownload`: the recording's bytes, or a range of them. The ticket in the path is the
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
    // If the recording was replaced since the client began, a range of the new one would not match the client's data.
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

/** Whether an If-None-Match header matches the ETag (RFC 9110 §13.1.2), so that no body is sent. */
function namesEtag(header: string | undefined, etag: string): boolean {
  const names = header?.split(',').map((name) => name.trim().replace(/^W\//, '')) ?? [];
  return names.includes(etag) || (names.length === 1 && names[0] === '*');
}

/** The name in the body of a request for an address, or a refusal. */
export async function readMediaName(
  c: AppContext,
): Promise<{ readonly ok: true; readonly name: string } | { readonly ok: false; readonly error: Refusal }> {
  const body = await readJsonBody(c);
  if (!body.ok) return body;
  const parsed = parseMediaBody(body.value);
  if (!parsed.ok) return { ok: false, error: { kind: 'invalid', errors: parsed.errors } };
  return { ok: true, name: parsed.value.name };
}

/** The requested bytes of a file: all, a part, or a range outside it. */
export type WantedRange =
  | { readonly kind: 'all' }
  | { readonly kind: 'part'; readonly offset: number; readonly length: number }
  | { readonly kind: 'unsatisfiable' };

const ALL: WantedRange = { kind: 'all' };

/** Parses a Range header (RFC 9110 §14). Malformed headers, and those with several ranges, are ignored. */
export function wantedRange(header: string | undefined, sizeBytes: number): WantedRange {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return ALL;
  const [first, last] = [match[1], match[2]];
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', offset: sizeBytes - length, length };
  }
  const offset = Number(first);
  if (last !== '' && Number(last) < offset) return ALL;
  if (offset >= sizeBytes) return { kind: 'unsatisfiable' };
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  return { kind: 'part', offset, length: end - offset };
}
