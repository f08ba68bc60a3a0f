import { z } from '@hono/zod-openapi';
import { diarizeBodySchema, parseDiarizeBody } from '../contract/diarize.ts';
import { onePerField } from '../contract/errors.ts';
import { IDEMPOTENCY_KEY_HEADER, type JobCreated, jobCreatedSchema } from '../contract/jobs.ts';
import { canPay } from '../middleware/credit.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { addressErrors } from './addresses.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { idempotency, idempotencyKeyErrors } from './idempotency.ts';

/** POST /v1/diarize: starts a diarization job. */
export const diarize = endpoint(
  {
    method: 'post',
    path: '/v1/diarize',
    summary: 'Who spoke when',
    request: {
      headers: z.object({ [IDEMPOTENCY_KEY_HEADER]: z.string().min(1).max(255).optional() }),
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
    if (!body.ok) return body.error;

    const parsed = parseDiarizeBody(body.value, policy);
    const errors = onePerField([
      ...(parsed.ok ? [] : parsed.errors),
      ...addressErrors(body.value, policy),
      ...idempotencyKeyErrors(c),
    ]);
    if (!parsed.ok || errors.length > 0) return { kind: 'invalid', errors };
    if (!canPay(account)) return { kind: 'payment_required' };

    const request = parsed.value;
    return async () => {
      const created = await jobs.create({
        accountId: account.id,
        kind: 'diarize',
        request,
        idempotency: await idempotency(c, 'diarize', request),
      });
      if (!created.ok) return created.error;
      const answer: JobCreated = { jobId: created.value.id, status: created.value.status };
      return c.json(answer);
    };
  },
);
