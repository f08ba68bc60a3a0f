import { z } from '@hono/zod-openapi';
import { diarizeBodySchema, parseDiarizeBody, parseRecountBody, recountBodySchema } from '../contract/diarize.ts';
import { apiErrorSchema, type FieldError, mapParsed, onePerField, type Parsed } from '../contract/errors.ts';
import {
  identifyBodySchema,
  parseIdentifyBody,
  parseVoiceprintBody,
  voiceprintBodySchema,
} from '../contract/identify.ts';
import {
  IDEMPOTENCY_KEY,
  IDEMPOTENCY_KEY_HEADER,
  isIdempotencyKey,
  type JobCreated,
  jobCreatedSchema,
} from '../contract/jobs.ts';
import { MEDIA_NAME_RULE, MEDIA_SCHEME, mediaName } from '../contract/media.ts';
import type { AppServices, CreateJob, JobSpec } from '../jobs/app-services.ts';
import { checkSourceUrl, checkWebhookUrl } from '../jobs/url-policy.ts';
import { canPay } from '../middleware/access.ts';
import type { AppContext } from '../middleware/context.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { type Endpoint, endpoint, errorResponses } from './endpoint.ts';
import { jobOfCaller } from './job-routes.ts';

/** The differences between the three endpoints that start jobs. */
export interface JobEndpoint {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly bodySchema: z.ZodType;
  /** Parses the body and reports all faulty fields. */
  readonly parse: (body: unknown, services: AppServices) => Parsed<JobSpec>;
}

/** POST to an endpoint that starts a job. The order of the checks is the contract's (§5). */
export function createJobEndpoint({ path, operationId, summary, bodySchema, parse }: JobEndpoint): Endpoint {
  return endpoint(
    {
      method: 'post',
      path,
      operationId,
      summary,
      request: {
        headers: z.object({
          [IDEMPOTENCY_KEY_HEADER]: z
            .string()
            .regex(IDEMPOTENCY_KEY)
            .optional()
            .openapi({ description: 'The same key with the same request gives the same job for 24 hours.' }),
        }),
        body: { required: true, content: { 'application/json': { schema: bodySchema } } },
      },
      responses: {
        200: { description: 'The job', content: { 'application/json': { schema: jobCreatedSchema } } },
        ...errorResponses(400, 401, 402, 403, 409, 413, 415),
      },
    },
    'jobs:write',
    async (c) => {
      const services = c.get('services');
      const { account } = c.get('principal');
      const body = await readJsonBody(c);
      if (!body.ok) return body.error;

      const parsed = parse(body.value, services);
      const errors: FieldError[] = onePerField([
        ...(parsed.ok ? [] : parsed.errors),
        ...addressErrors(body.value, services.policy),
        ...idempotencyKeyErrors(c),
      ]);
      if (!parsed.ok || errors.length > 0) return { kind: 'invalid', errors };
      const key = c.req.header(IDEMPOTENCY_KEY_HEADER);
      // A repeated call is free: its job may have used up the credit.
      const isReplayOnly = !(await canPay(services, account));
      if (isReplayOnly && (key === undefined || !(await services.jobs.hasReplay(account.id, key))))
        return { kind: 'payment_required' };

      const spec = parsed.value;
      return async () => {
        const created = await services.jobs.create({
          ...spec,
          accountId: account.id,
          isReplayOnly,
          idempotency: await idempotency(c, spec.kind, spec.request),
        });
        if (!created.ok) return created.error;
        const answer: JobCreated = { jobId: created.value.id, status: created.value.status };
        return c.json(answer);
      };
    },
  );
}

/** POST /v1/diarize: starts a diarization job. */
export const diarize = createJobEndpoint({
  path: '/v1/diarize',
  operationId: 'diarize',
  summary: 'Who spoke when',
  bodySchema: diarizeBodySchema,
  parse: (body, { policy }) => mapParsed(parseDiarizeBody(body, policy), (request) => ({ kind: 'diarize', request })),
});

/** POST /v1/identify: starts a job that diarizes a recording and matches its speakers with given voiceprints. */
export const identify = createJobEndpoint({
  path: '/v1/identify',
  operationId: 'identify',
  summary: 'Who of these people spoke when',
  bodySchema: identifyBodySchema,
  parse: (body, { voiceprintFault }) =>
    mapParsed(parseIdentifyBody(body, voiceprintFault), (request) => ({ kind: 'identify', request })),
});

/** POST /v1/voiceprint: starts a job that makes a voiceprint of one person's voice. */
export const voiceprint = createJobEndpoint({
  path: '/v1/voiceprint',
  operationId: 'createVoiceprint',
  summary: 'Make a voiceprint',
  bodySchema: voiceprintBodySchema,
  parse: (body) => mapParsed(parseVoiceprintBody(body), (request) => ({ kind: 'voiceprint', request })),
});

/** POST /v1/jobs/{jobId}/recount: diarizes again from a job's stored analysis, with other bounds. */
export const recountJob = endpoint(
  {
    method: 'post',
    path: '/v1/jobs/{jobId}/recount',
    operationId: 'recountJob',
    summary: 'Diarize again with another number of speakers',
    request: {
      params: z.object({ jobId: z.string() }),
      headers: z.object({ [IDEMPOTENCY_KEY_HEADER]: z.string().regex(IDEMPOTENCY_KEY).optional() }),
      body: { required: true, content: { 'application/json': { schema: recountBodySchema } } },
    },
    responses: {
      200: { description: 'The new job', content: { 'application/json': { schema: jobCreatedSchema } } },
      ...errorResponses(400, 401, 403, 404, 413, 415),
      409: {
        description: 'The analysis of the job is gone, or the Idempotency-Key was used with another request',
        content: { 'application/json': { schema: apiErrorSchema } },
      },
    },
  },
  'jobs:write',
  async (c) => {
    const found = await jobOfCaller(c);
    if (!found) return { kind: 'not_found' };
    const body = await readJsonBody(c, {});
    if (!body.ok) return body.error;
    const parsed = parseRecountBody(body.value);
    const errors = onePerField([...(parsed.ok ? [] : parsed.errors), ...idempotencyKeyErrors(c)]);
    if (!parsed.ok || errors.length > 0) return { kind: 'invalid', errors };
    const bounds = parsed.value;
    return async () => {
      const key = await idempotency(c, 'diarize', { recount: found.id, ...bounds });
      const created = await c.get('services').jobs.recount(c.get('principal').account.id, found.id, bounds, key);
      if (!created) return { kind: 'not_found' };
      if (!created.ok) return created.error;
      const answer: JobCreated = { jobId: created.value.id, status: created.value.status };
      return c.json(answer);
    };
  },
);

/**
 * Checks the addresses of a request. The schema reports fields that are not strings.
 * @returns an entry for each refused address
 */
export function addressErrors(body: unknown, policy: { readonly allowLoopback: boolean }): FieldError[] {
  if (typeof body !== 'object' || body === null) return [];
  const { url, webhook } = body as { url?: unknown; webhook?: unknown };
  const errors: FieldError[] = [];
  if (typeof url === 'string' && url !== '') {
    const message = sourceFault(url, policy);
    if (message) errors.push({ field: 'url', message });
  }
  if (typeof webhook === 'string' && webhook !== '') {
    const checked = checkWebhookUrl(webhook, policy);
    if (!checked.ok) errors.push({ field: 'webhook', message: checked.error.message });
  }
  return errors;
}

function sourceFault(url: string, policy: { readonly allowLoopback: boolean }): string | undefined {
  if (url.startsWith(MEDIA_SCHEME)) return mediaName(url) === undefined ? MEDIA_NAME_RULE : undefined;
  const checked = checkSourceUrl(url, policy);
  return checked.ok ? undefined : checked.error.message;
}

/** Faults of the request's Idempotency-Key header; none without the header. */
export function idempotencyKeyErrors(c: AppContext): FieldError[] {
  const key = c.req.header(IDEMPOTENCY_KEY_HEADER);
  if (key === undefined || isIdempotencyKey(key)) return [];
  return [{ field: IDEMPOTENCY_KEY_HEADER, message: 'must be 1 to 255 printable ASCII characters' }];
}

/**
 * The key with the hash of its request. The hash covers the endpoint and the validated request: another order of
 * fields, a null or an alias is the same request; the same body at another endpoint is a different one.
 */
export async function idempotency(
  c: AppContext,
  kind: CreateJob['kind'],
  request: object,
): Promise<CreateJob['idempotency']> {
  const key = c.req.header(IDEMPOTENCY_KEY_HEADER);
  if (key === undefined) return undefined;
  const text = new TextEncoder().encode(`${kind}\n${canonicalJson(request)}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return { key, bodyHash: Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('') };
}

/** JSON with the keys of every object in code point order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
