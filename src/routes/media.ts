import { z } from '@hono/zod-openapi';
import { mediaAddressSchema, mediaBodySchema, rawBytesSchema } from '../contract/media.ts';
import { RECORDING_MAX_BYTES } from '../jobs/app-services.ts';
import { countAddressCall } from '../middleware/rate-limit.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { readMediaName } from './media-name.ts';

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
const PART = invalid('Content-Range', 'is not taken: send the whole recording');
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
    // One address could fill the bucket otherwise: every PUT makes an object that stays for 48 hours.
    await countAddressCall(c, accountId, rateLimits.post);

    const declared = c.req.header('Content-Length');
    const contentLength = declared !== undefined && /^\d+$/.test(declared) ? Number(declared) : undefined;
    if (contentLength !== undefined && contentLength > RECORDING_MAX_BYTES) return TOO_LARGE;
    // RFC 9110 §14.5: a part that is taken for the whole would destroy the recording that it is a part of.
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
