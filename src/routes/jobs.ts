import { z } from '@hono/zod-openapi';
import { headerRefs } from '../contract/api-document.ts';
import { type JobResult, jobResultSchema } from '../contract/jobs.ts';
import type { ErrorOutput } from '../contract/outputs.ts';
import type { JobView } from '../jobs/app-services.ts';
import type { AppContext } from '../middleware/context.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { wrapStream } from './wrap-stream.ts';

/** GET /v1/jobs/{jobId}: a job with its output, once there is one. */
export const readJob = endpoint(
  {
    method: 'get',
    path: '/v1/jobs/{jobId}',
    operationId: 'getJob',
    summary: 'Read a job',
    request: { params: z.object({ jobId: z.string() }) },
    responses: {
      200: {
        description: 'The job',
        headers: headerRefs('X-Job-Progress', 'X-Job-Attempt'),
        content: { 'application/json': { schema: jobResultSchema } },
      },
      ...errorResponses(401, 403, 404),
    },
  },
  'jobs:read',
  async (c) => {
    const job = await jobOfCaller(c);
    return job ? () => answerJob(c, job) : { kind: 'not_found' };
  },
);

/** The job that the path names; undefined if the caller's account has none of that id. */
export function jobOfCaller(c: AppContext): Promise<JobView | undefined> {
  return c.get('services').jobs.find(c.get('principal').account.id, c.req.param('jobId') ?? '');
}

/** A job with its output, if that is still there. */
export async function answerJob(c: AppContext, job: JobView): Promise<Response> {
  const head = describeJob(job);
  // In headers, since the contract's body has no place for them.
  if (job.progress !== undefined) c.header('X-Job-Progress', job.progress.toFixed(3));
  if (job.attempt) c.header('X-Job-Attempt', `${job.attempt.number}/${job.attempt.of}`);
  // The stored output can hold hundreds of thousands of values: it passes through as bytes, never parsed.
  const { jobs } = c.get('services');
  const output = job.status === 'succeeded' && c.req.method !== 'HEAD' ? await jobs.openOutput(job.id) : undefined;
  if (!output) return c.json(head);
  const body = wrapStream(`${JSON.stringify(head).slice(0, -1)},"output":`, output, '}');
  return c.body(body, 200, { 'Content-Type': 'application/json' });
}

/** The job without the output document of a success. */
export function describeJob(job: JobView): JobResult {
  const output: ErrorOutput | undefined = job.error && { error: job.error.message, code: job.error.code };
  return {
    jobId: job.id,
    status: job.status,
    createdAt: new Date(job.createdAt).toISOString(),
    updatedAt: new Date(job.updatedAt).toISOString(),
    ...(job.metadata && { metadata: job.metadata }),
    ...(output && { output }),
  };
}
