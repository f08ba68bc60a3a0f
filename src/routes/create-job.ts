import { z } from '@hono/zod-openapi';
import { type FieldError, onePerField, type Parsed } from '../contract/errors.ts';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_HEADER, type JobCreated, jobCreatedSchema } from '../contract/jobs.ts';
import type { AppServices, JobSpec } from '../jobs/app-services.ts';
import { canPay } from '../middleware/credit.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { addressErrors } from './addresses.ts';
import { type Endpoint, endpoint, errorResponses } from './endpoint.ts';
import { idempotency, idempotencyKeyErrors } from './idempotency.ts';

/** What makes the three endpoints that start jobs different from each other. */
export interface JobEndpoint {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly bodySchema: z.ZodType;
  /** Reads the body; finds every faulty field at once. */
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
      // A repeated call costs nothing: its job may be what the credit went to.
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
