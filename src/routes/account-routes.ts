import { z } from '@hono/zod-openapi';
import { KEY_TEST_ANSWER, keyTestSchema, parseUsageQuery, usageReport, usageSchema } from '../contract/account.ts';
import { endpoint, errorResponses } from './endpoint.ts';

/** GET /v1/test: whether a key works. */
export const keyTest = endpoint(
  {
    method: 'get',
    path: '/v1/test',
    operationId: 'testKey',
    summary: 'Test a key',
    responses: {
      200: { description: 'The key works', content: { 'application/json': { schema: keyTestSchema } } },
      ...errorResponses(401),
    },
  },
  'any key',
  (c) => () => c.json(KEY_TEST_ANSWER),
);

/** GET /v1/usage: what was billed, by UTC day and kind. */
export const readUsage = endpoint(
  {
    method: 'get',
    path: '/v1/usage',
    operationId: 'getUsage',
    summary: 'Billed usage',
    request: {
      query: z.object({
        from: z.string().optional().openapi({ example: '2026-01-01', description: 'Date or datetime' }),
        to: z.string().optional().openapi({ example: '2026-01-31', description: 'Date (inclusive) or datetime' }),
      }),
    },
    responses: {
      200: { description: 'Usage by day and kind', content: { 'application/json': { schema: usageSchema } } },
      ...errorResponses(400, 401, 403),
    },
  },
  'jobs:read',
  (c) => {
    const range = parseUsageQuery({ from: c.req.query('from'), to: c.req.query('to') }, Date.now());
    if (!range.ok) return { kind: 'invalid', errors: range.errors };
    const { usage } = c.get('services');
    const { account } = c.get('principal');
    return async () => c.json(usageReport(range.value, await usage.perDay(account.id, range.value)));
  },
);

const healthSchema = z.object({ status: z.literal('ok') }).openapi('Health', { example: { status: 'ok' } });

/** GET /healthz: whether the service can take jobs, for monitors. */
export const healthz = endpoint(
  {
    method: 'get',
    path: '/healthz',
    operationId: 'getHealth',
    summary: 'Whether the service can take jobs',
    responses: {
      200: { description: 'It can take jobs', content: { 'application/json': { schema: healthSchema } } },
      ...errorResponses(503),
    },
  },
  'public',
  (c) => async () =>
    (await c.get('services').canTakeJobs()) ? c.json({ status: 'ok' as const }) : { kind: 'unavailable' },
);
