import { toFieldErrors } from '../contract/errors.ts';
import { CURSOR_RULE, type JobList, jobListQuerySchema, jobListSchema } from '../contract/jobs.ts';
import { type Endpoint, endpoint, errorResponses } from './endpoint.ts';

const DEFAULT_LIMIT = 10;

/** The account's jobs, newest first, a page at a time. */
function listAt(path: string, operationId: string, summary: string): Endpoint {
  return endpoint(
    {
      method: 'get',
      path,
      operationId,
      summary,
      request: { query: jobListQuerySchema },
      responses: {
        200: { description: 'A page of jobs', content: { 'application/json': { schema: jobListSchema } } },
        ...errorResponses(400, 401, 403),
      },
    },
    'jobs:read',
    async (c) => {
      const parsed = jobListQuerySchema.safeParse(c.req.query());
      if (!parsed.success) return { kind: 'invalid', errors: toFieldErrors(parsed.error) };
      const { limit, cursor, status } = parsed.data;
      const page = await c.get('services').jobs.list(c.get('principal').account.id, {
        limit: limit === undefined ? DEFAULT_LIMIT : Number(limit),
        cursor,
        status,
      });
      if (!page.ok) return { kind: 'invalid', errors: [{ field: 'cursor', message: CURSOR_RULE }] };
      const { items, nextCursor = null } = page.value;
      const answer: JobList = {
        items: items.map((job) => ({ ...job, createdAt: new Date(job.createdAt).toISOString() })),
        nextCursor,
      };
      return () => c.json(answer);
    },
  );
}

/** GET /v2/jobs */
export const listJobs = listAt('/v2/jobs', 'listJobs', 'List jobs');
/** GET /v1/jobs: the same list under the prefix of all other addresses. */
export const listJobsV1 = listAt('/v1/jobs', 'listJobsV1', 'List jobs, as /v2/jobs does');
