import { z } from '@hono/zod-openapi';
import { endpoint, errorResponses } from './endpoint.ts';

const healthSchema = z.object({ status: z.literal('ok') }).openapi('Health', { example: { status: 'ok' } });

/** GET /healthz: whether the service can take jobs, for monitors. */
export const healthz = endpoint(
  {
    method: 'get',
    path: '/healthz',
    operationId: 'getHealth',
    summary: 'Whether the service can take jobs',
    responses: {
      200: { description: 'It can', content: { 'application/json': { schema: healthSchema } } },
      ...errorResponses(503),
    },
  },
  'public',
  (c) => async () =>
    (await c.get('services').canTakeJobs()) ? c.json({ status: 'ok' as const }) : { kind: 'unavailable' },
);
