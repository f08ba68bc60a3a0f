import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { jobResultSchema, jobStatusSchema } from './jobs.ts';

/** Names of the tags under which the document groups its operations. */
export const TAGS = {
  jobs: 'Jobs',
  media: 'Media',
  live: 'Live',
  openai: 'OpenAI',
  account: 'Account',
  documentation: 'Documentation',
} as const;
export type Tag = (typeof TAGS)[keyof typeof TAGS];

const TAG_DESCRIPTIONS: Readonly<Record<Tag, string>> = {
  Jobs: 'Diarization, voiceprints and identification: create a job, follow it, read its output.',
  Media: 'Uploads and downloads of recordings. Stored for 48 hours, private to the account.',
  Live: 'Speaker turns of a live stream, over a WebSocket.',
  OpenAI: "OpenAI's addresses, for its clients.",
  Account: 'Keys and usage.',
  Documentation: 'This document and its pages.',
};

const DESCRIPTION = [
  'Who spoke when. Send the address of a recording, and get its speaker turns by polling or by webhook.',
  [
    'All endpoints except the public ones require `Authorization: Bearer KEY`.',
    'In an optional field, `null` means absent. Unknown fields and a trailing slash are ignored.',
    'Errors are checked in this order: 401, 403, 404 or 405, 413, 415, 400, 402, 429.',
    'When too many large bodies arrive at once, 429 comes before 415.',
  ].join(' '),
].join('\n\n');

/** The head of the API document; the registry adds the endpoints. */
export function documentHead(version: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'rollcall',
      version,
      summary: 'Speaker diarization service',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: Object.values(TAGS).map((name) => ({ name, description: TAG_DESCRIPTIONS[name] })),
  };
}

/** Headers of answers, described once and referred to by name. */
const HEADERS = {
  'X-Request-Id': {
    description: 'Id of this request, also in the log of the service. Include it when you report a problem.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests that the account may send to this endpoint per window of 60 seconds.',
    schema: { type: 'integer', minimum: 0 },
    example: 100,
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the window.',
    schema: { type: 'integer', minimum: 0 },
    example: 99,
  },
  'X-RateLimit-Reset': {
    description: 'Seconds until the window ends.',
    schema: { type: 'integer', minimum: 0 },
    example: 42,
  },
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 0 },
    example: 42,
  },
  'WWW-Authenticate': {
    description: 'The challenge of RFC 6750.',
    schema: { type: 'string' },
    example: 'Bearer realm="rollcall"',
  },
  'X-Job-Id': {
    description: 'Id of the job that made the answer, for GET /v1/jobs/{jobId}; absent if there is no job.',
    schema: { type: 'string' },
    example: '89266a74-7538-4e62-aed4-602f160c518f',
  },
  'X-Job-Progress': {
    description: 'Progress of a running job, 0 to 1; otherwise absent.',
    schema: { type: 'number', minimum: 0, maximum: 1 },
    example: 0.375,
  },
  'X-Job-Attempt': {
    description: 'Current and maximum number of tries to read the recording; sent from the second try on.',
    schema: { type: 'string' },
    example: '2/5',
  },
  'Accept-Ranges': {
    description: 'Range requests are supported.',
    required: true,
    schema: { type: 'string' },
    example: 'bytes',
  },
  'Content-Disposition': {
    description: 'File name for the download.',
    required: true,
    schema: { type: 'string' },
    example: 'attachment; filename="monday"',
  },
  'Content-Range': {
    description: 'Byte range of this answer and size of the file; `bytes */SIZE` if the range is outside the file.',
    required: true,
    schema: { type: 'string' },
    example: 'bytes 0-1023/146515',
  },
  ETag: {
    description: 'Changes when another recording is uploaded under the name; for `If-Range` and `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
    example: '"5e7ff3898a0d4c6f"',
  },
  Upgrade: {
    description: 'Protocol of this address; sent if the request was no upgrade.',
    schema: { type: 'string' },
    example: 'websocket',
  },
  'Sec-WebSocket-Version': {
    description: 'Supported version of the protocol; sent if the request named another.',
    schema: { type: 'string' },
    example: '13',
  },
} as const;
export type DocumentedHeader = keyof typeof HEADERS;

/** References to the described headers, for the `headers` of a response. */
export function headerRefs(...names: readonly DocumentedHeader[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const callbackSchema = z
  .union([jobResultSchema, z.object({ jobId: z.string(), status: jobStatusSchema }).strict().openapi('JobStatusOnly')])
  .openapi('JobCallback');

const callbackHeaders = z.object({
  'X-Request-Timestamp': z.string().regex(/^\d+$/).openapi({
    description: 'Unix time of the delivery in seconds; part of the signed text.',
    example: '1767605407',
  }),
  'X-Signature': z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .openapi({
      description: "Hex HMAC-SHA256 of `v0:{X-Request-Timestamp}:{raw body}` with the account's webhook secret.",
    }),
  'X-Signature-Previous': z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .openapi({ description: 'The same with the previous secret; sent for 24 hours after the secret was changed.' }),
  'x-retry-num': z
    .string()
    .regex(/^[1-3]$/)
    .optional()
    .openapi({ description: 'Number of the retry; absent at the first delivery.', example: '1' }),
  'x-retry-reason': z
    .enum(['http_timeout', 'too_many_redirects', 'connection_failed', 'ssl_error', 'http_error', 'unknown_error'])
    .optional()
    .openapi({ description: 'Why the previous delivery failed.' }),
});

/** Registers what no single endpoint owns: the security scheme, the headers and the job callback. */
export function registerShared(registry: OpenAPIHono['openAPIRegistry']): void {
  registry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An API key: a signed token of an account, with scopes and an optional expiry.',
  });
  for (const [name, header] of Object.entries(HEADERS)) registry.registerComponent('headers', name, header);
  registry.registerWebhook({
    method: 'post',
    path: 'jobEnded',
    operationId: 'jobEnded',
    tags: [TAGS.jobs],
    // The receiver needs no API key: it verifies deliveries by their signature.
    security: [],
    summary: 'A job has ended',
    description:
      'Sent to the `webhook` of a job when the job has succeeded, failed or been canceled. ' +
      'With `webhookStatusOnly` the body has `jobId` and `status` only. ' +
      'Without a 2xx answer within 10 seconds, the delivery is repeated at once, after 1 minute and after 5 minutes.',
    request: {
      headers: callbackHeaders,
      body: { required: true, content: { 'application/json': { schema: callbackSchema } } },
    },
    responses: {
      '2XX': { description: 'Received' },
      default: { description: 'Not received: the delivery is repeated, at most three times' },
    },
  });
}
