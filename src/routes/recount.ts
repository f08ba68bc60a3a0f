import { z } from '@hono/zod-openapi';
import { apiErrorSchema, onePerField } from '../contract/errors.ts';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_HEADER, type JobCreated, jobCreatedSchema } from '../contract/jobs.ts';
import { parseRecountBody, recountBodySchema } from '../contract/recount.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { idempotency, idempotencyKeyErrors } from './idempotency.ts';
import { jobOfCaller } from './jobs.ts';

/** POST /v1/jobs/{jobId}/recount: diarizes again from a job's kept analysis, with other bounds. */
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
