import { z } from '@hono/zod-openapi';
import { diarizeBodySchema, parseDiarizeBody } from '../contract/diarize.ts';
import { onePerField } from '../contract/errors.ts';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_HEADER, type JobCreated, jobCreatedSchema } from '../contract/jobs.ts';
import { canPay } from '../middleware/credit.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { refuse } from '../middleware/refusals.ts';
import { addressErrors } from './addresses.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { idempotency, idempotencyKeyErrors } from './idempotency.ts';

/** POST /v1/diarize: starts a diarization job. */
export const diarize = endpoint(
  {
    method: 'post',
    path: '/v1/diarize',
    operationId: 'diarize',
    summary: 'Who spoke when',
    request: {
      headers: z.object({
        [IDEMPOTENCY_KEY_HEADER]: z
          .string()
          .regex(IDEMPOTENCY_KEY)
          .optional()
          .openapi({ description: 'The same key with the same request gives the same job for 24 hours.' }),
      }),
      body: { required: true, content: { 'application/json': { schema: diarizeBodySchema } } },
    },
    responses: {
      200: { description: 'The job', content: { 'application/json': { schema: jobCreatedSchema } } },
      ...errorResponses(400, 401, 402, 403, 409, 413, 415),
    },
  },
  'jobs:write',
  async (c) => {
    const { jobs, policy } = c.get('services');
    const { account } = c.get('principal');
    const body = await readJsonBody(c);
    if (!body.ok) return refuse(c, body.error);

    const parsed = parseDiarizeBody(body.value, policy);
    const errors = onePerField([
      ...(parsed.ok ? [] : parsed.errors),
      ...addressErrors(body.value, policy),
      ...idempotencyKeyErrors(c),
    ]);
    if (!parsed.ok || errors.length > 0) return refuse(c, { kind: 'invalid', errors });
    if (!canPay(account)) return refuse(c, { kind: 'payment_required' });

    const request = parsed.value;
    const created = await jobs.create({
      accountId: account.id,
      kind: 'diarize',
      request,
      idempotency: await idempotency(c, 'diarize', request),
    });
    if (!created.ok) return refuse(c, created.error);
    const answer: JobCreated = { jobId: created.value.id, status: created.value.status };
    return c.json(answer);
  },
);
