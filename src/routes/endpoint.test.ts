import { createRoute } from '@hono/zod-openapi';
import { expect, it } from 'vitest';
import { jobCreatedSchema } from '../contract/jobs.ts';
import { described, operationId } from './endpoint.ts';

it('derives operation ids from method and address', () => {
  expect(operationId('get', '/v1/jobs/{jobId}/events')).toBe('getJobsByJobIdEvents');
  expect(operationId('post', '/v1/media/input')).toBe('postMediaInput');
  expect(operationId('get', '/v2/jobs')).toBe('getV2Jobs');
  expect(operationId('get', '/openapi.json')).toBe('getOpenapiJson');
  expect(operationId('get', '/')).toBe('getRoot');
});

it('keeps the descriptions of the endpoint itself', () => {
  const own = { description: 'Mine', headers: { 'X-Own': { schema: { type: 'string' as const } } } };
  const route = createRoute({
    method: 'get',
    path: '/v1/live/{id}',
    operationId: 'mine',
    responses: { 200: own, 429: own },
  });
  const result = described(route, false);
  expect(result).toMatchObject({ operationId: 'mine', tags: ['Live'] });
  expect(Object.keys(result.responses)).toEqual(['200', '429', '500']);
  expect(result.responses[429]).toMatchObject({ description: 'Mine' });
  expect(Object.keys((result.responses[429] as { headers: object }).headers)).toEqual([
    'X-Request-Id',
    'Retry-After',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'X-Own',
  ]);
});

it('links a created job to the operation that reads it', () => {
  const created = { description: 'The job', content: { 'application/json': { schema: jobCreatedSchema } } };
  const route = createRoute({ method: 'post', path: '/v1/diarize', responses: { 200: created } });
  const links = { job: { operationId: 'getJob', parameters: { jobId: '$response.body#/jobId' } } };
  expect(described(route, false).responses).toMatchObject({ 200: { links } });
  expect(described(route, false).responses[500]).not.toHaveProperty('links');
});

it('documents rate limits without a key if the address names the account', () => {
  const route = createRoute({
    method: 'put',
    path: '/v1/media/upload/{ticket}',
    responses: { 200: { description: 'Stored' }, 401: { description: 'Bad' } },
  });
  const { responses } = described(route, true, true);
  const headers = (status: number) => Object.keys((responses[status] as { headers: object }).headers);
  expect(Object.keys(responses)).toEqual(['200', '401', '429', '500']);
  expect(headers(200)).toContain('X-RateLimit-Remaining');
  expect(headers(401)).toEqual(['X-Request-Id']);
  expect(headers(429)).toEqual(expect.arrayContaining(['Retry-After', 'X-RateLimit-Reset']));
});

it('documents no rate window without an account, but the refusal of floods', () => {
  const route = createRoute({ method: 'get', path: '/docs', responses: { 200: { description: 'A page' } } });
  const result = described(route, true);
  expect(result).toMatchObject({ tags: ['Documentation'] });
  expect(Object.keys(result.responses)).toEqual(['200', '429', '500']);
  expect(Object.keys((result.responses[200] as { headers: object }).headers)).toEqual(['X-Request-Id']);
});
