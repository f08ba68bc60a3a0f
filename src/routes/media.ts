import { z } from '@hono/zod-openapi';
import { mediaAddressSchema, mediaBodySchema } from '../contract/media.ts';
import { RECORDING_MAX_BYTES } from '../jobs/app-services.ts';
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
        content: { 'application/octet-stream': {} },
      },
    },
    responses: { 200: { description: 'Stored' }, ...errorResponses(400, 401, 413) },
  },
  'public',
  (c) => async () => {
    const { media } = c.get('services');
    const declared = c.req.header('Content-Length');
    const contentLength = declared !== undefined && /^\d+$/.test(declared) ? Number(declared) : undefined;
    // RFC 9110 §14.5: a part that is taken for the whole would destroy the recording that it is a part of.
    const isPart = c.req.header('Content-Range') !== undefined;
    const ticket = c.req.param('ticket') ?? '';
    const stored = await media.acceptUpload(ticket, c.req.raw.body, { contentLength, isPart });
    if (stored.ok) return c.body(null, 200);
    switch (stored.error.kind) {
      case 'too_large':
        return { kind: 'body_too_large', maxBytes: RECORDING_MAX_BYTES };
      case 'part': {
        const message = 'is not taken: send the whole recording';
        return { kind: 'invalid', errors: [{ field: 'Content-Range', message }] };
      }
      case 'empty':
        return { kind: 'invalid', errors: [{ field: 'body', message: 'is empty' }] };
      default:
        return { kind: stored.error.kind };
    }
  },
);
