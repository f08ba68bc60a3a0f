import { z } from '@hono/zod-openapi';
import { parseUsageQuery, usageReport, usageSchema } from '../contract/usage.ts';
import { endpoint, errorResponses } from './endpoint.ts';

/** GET /v1/usage: what was billed, by UTC day and kind. */
export const readUsage = endpoint(
  {
    method: 'get',
    path: '/v1/usage',
    operationId: 'getUsage',
    summary: 'What was billed',
    request: {
      query: z.object({
        from: z.string().optional().openapi({ example: '2026-01-01', description: 'Date or datetime' }),
        to: z.string().optional().openapi({ example: '2026-01-31', description: 'Date (all of it) or datetime' }),
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
