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

const DESCRIPTION = `Who spoke when. Send the address of a recording, get its speaker turns by polling or by webhook.

Every endpoint but the public ones wants \`Authorization: Bearer KEY\`. \`null\` stands for an absent optional field, unknown fields are
ignored, and a trailing slash makes no difference. Errors are looked for in this order: 401, 403, 404 or 405, 413, 415, 400, 402, 429 (for a large body that found no
place among others, before 415).`;

/** The head of the API document; what the endpoints say of themselves is added from their registry. */
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
    description: 'Id of this request; also in the log of the service. Quote it when something goes wrong.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests that the account may send to this endpoint in a window of 60 seconds.',
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
    description: 'The job behind the answer, for GET /v1/jobs/{jobId}; absent where none was made.',
    schema: { type: 'string' },
    example: '89266a74-7538-4e62-aed4-602f160c518f',
  },
  'X-Job-Progress': {
    description: 'How far a running job is, 0 to 1; absent otherwise.',
    schema: { type: 'number', minimum: 0, maximum: 1 },
    example: 0.375,
  },
  'X-Job-Attempt': {
    description: 'Number of the try to read the recording, and of how many; sent from the second try on.',
    schema: { type: 'string' },
    example: '2/5',
  },
  'Accept-Ranges': {
    description: 'That parts of the recording can be asked for.',
    required: true,
    schema: { type: 'string' },
    example: 'bytes',
  },
  'Content-Disposition': {
    description: 'Name to store the file under.',
    required: true,
    schema: { type: 'string' },
    example: 'attachment; filename="monday"',
  },
  'Content-Range': {
    description: 'Which part this is, and the size of the whole; `bytes */SIZE` where there is no such part.',
    required: true,
    schema: { type: 'string' },
    example: 'bytes 0-1023/146515',
  },
  ETag: {
    description:
      'Tells a recording from what was uploaded under its name before or after; for `If-Range` and `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
    example: '"5e7ff3898a0d4c6f"',
  },
  Upgrade: {
    description: 'The protocol of this address, where the request asked for no upgrade.',
    schema: { type: 'string' },
    example: 'websocket',
  },
  'Sec-WebSocket-Version': {
    description: 'The version of the protocol that this address speaks, where the request named another.',
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
    description: 'Unix time of the delivery in seconds; part of what is signed.',
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
    .openapi({ description: 'The same with the secret of before, for 24 hours after the secret was changed.' }),
  'x-retry-num': z
    .string()
    .regex(/^[1-3]$/)
    .optional()
    .openapi({ description: 'Which retry this is; absent at the first delivery.', example: '1' }),
  'x-retry-reason': z
    .enum(['http_timeout', 'too_many_redirects', 'connection_failed', 'ssl_error', 'http_error', 'unknown_error'])
    .optional()
    .openapi({ description: 'Why the delivery before failed.' }),
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
    // The receiver's own; what tells a delivery from a forged one is its signature.
    security: [],
    summary: 'A job has ended',
    description:
      'Sent to the `webhook` of a job when it has succeeded, failed or been canceled. With `webhookStatusOnly` the body is ' +
      '`jobId` and `status` alone. An answer other than 2xx within 10 seconds is tried again at once, after 1 minute and after 5 minutes.',
    request: {
      headers: callbackHeaders,
      body: { required: true, content: { 'application/json': { schema: callbackSchema } } },
    },
    responses: {
      '2XX': { description: 'Received' },
      default: { description: 'Not received: the delivery is tried again, three times at most' },
    },
  });
}
