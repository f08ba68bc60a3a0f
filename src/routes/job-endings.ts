import { z } from '@hono/zod-openapi';
import { jobResultSchema } from '../contract/jobs.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { answerJob, describeJob, jobOfCaller } from './jobs.ts';

const params = z.object({ jobId: z.string() });

/** POST /v1/jobs/{jobId}/cancel: ends a job that still works; one that has ended stays as it is. */
export const cancelJob = endpoint(
  {
    method: 'post',
    path: '/v1/jobs/{jobId}/cancel',
    operationId: 'cancelJob',
    summary: 'Cancel a job',
    request: { params },
    responses: {
      200: { description: 'The job as it is now', content: { 'application/json': { schema: jobResultSchema } } },
      ...errorResponses(401, 403, 404),
    },
  },
  'jobs:write',
  async (c) => {
    const found = await jobOfCaller(c);
    if (!found) return { kind: 'not_found' };
    return async () => {
      const { jobs } = c.get('services');
      const job = await jobs.cancel(c.get('principal').account.id, found.id);
      if (!job) return { kind: 'not_found' };
      if (c.get('principal').scopes.has('jobs:read')) return answerJob(c, job);
      // Who may not read jobs learns no more than that it has ended.
      const { jobId, status, createdAt, updatedAt } = describeJob(job);
      return c.json({ jobId, status, createdAt, updatedAt });
    };
  },
);

/** DELETE /v1/jobs/{jobId}: removes a job with all that it holds. */
export const deleteJob = endpoint(
  {
    method: 'delete',
    path: '/v1/jobs/{jobId}',
    operationId: 'deleteJob',
    summary: 'Delete a job',
    request: { params },
    responses: { 204: { description: 'The job is gone' }, ...errorResponses(401, 403, 404) },
  },
  'jobs:write',
  async (c) => {
    const found = await jobOfCaller(c);
    if (!found) return { kind: 'not_found' };
    return async () => {
      const isGone = await c.get('services').jobs.remove(c.get('principal').account.id, found.id);
      return isGone ? c.body(null, 204) : { kind: 'not_found' };
    };
  },
);
