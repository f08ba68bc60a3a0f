import { z } from '@hono/zod-openapi';
import { streamSSE } from 'hono/streaming';
import { headerRefs } from '../contract/api-document.ts';
import { toFieldErrors } from '../contract/errors.ts';
import {
  CURSOR_RULE,
  type JobList,
  type JobResult,
  jobListQuerySchema,
  jobListSchema,
  jobResultSchema,
  successOutputSchemas,
} from '../contract/jobs.ts';
import { diarizedTranscriptionSchema } from '../contract/openai.ts';
import {
  endingOf,
  OUTPUT_FORMAT_NAMES,
  OUTPUT_FORMATS,
  type OutputFormat,
  outputFormat,
} from '../contract/output-formats.ts';
import { annotationSchema, type ErrorOutput } from '../contract/outputs.ts';
import type { JobView, JobWatchItem } from '../jobs/app-services.ts';
import { isTerminal } from '../jobs/job-record.ts';
import { FINAL_EVENT_ID } from '../jobs/job-views.ts';
import { keyCheck } from '../middleware/access.ts';
import type { AppContext } from '../middleware/context.ts';
import { type Endpoint, endpoint, errorResponses } from './endpoint.ts';

/** GET /v1/jobs/{jobId}: a job, with its output if it has one. */
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

/** The job that the path names; undefined if the caller's account has no job with that id. */
export function jobOfCaller(c: AppContext): Promise<JobView | undefined> {
  return c.get('services').jobs.find(c.get('principal').account.id, c.req.param('jobId') ?? '');
}

/** Answers with a job, and its output if it is still stored. */
export async function answerJob(c: AppContext, job: JobView): Promise<Response> {
  const head = describeJob(job);
  // In headers, because the contract's body has no fields for them.
  if (job.progress !== undefined) c.header('X-Job-Progress', job.progress.toFixed(3));
  if (job.attempt) c.header('X-Job-Attempt', `${job.attempt.number}/${job.attempt.of}`);
  // The stored output can have hundreds of thousands of values: it passes through as bytes, without parsing.
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

/**
 * Streams the bytes of `body` between two texts. A failure of `body` aborts the stream, so that a reader never takes an
 * incomplete document for a complete one.
 */
export function wrapStream(
  before: string,
  body: ReadableStream<Uint8Array>,
  after: string,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(before));
    },
    async pull(controller) {
      const next = await reader.read();
      if (!next.done) return controller.enqueue(next.value);
      controller.enqueue(encoder.encode(after));
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const DEFAULT_LIMIT = 10;

/** Lists the account's jobs in pages, newest first. */
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
/** GET /v1/jobs: the list of `/v2/jobs` under the prefix of all other addresses. */
export const listJobsV1 = listAt('/v1/jobs', 'listJobsV1', 'List jobs, as /v2/jobs does');

/** Schemas of the JSON formats. */
const JSON_SCHEMAS = [...successOutputSchemas, annotationSchema, diarizedTranscriptionSchema] as const;

/** GET /v1/jobs/{jobId}/output: the output of a successful job as a file. */
export const jobOutput = endpoint(
  {
    method: 'get',
    path: '/v1/jobs/{jobId}/output',
    operationId: 'getJobOutput',
    summary: 'Download the output of a job',
    request: {
      params: z.object({ jobId: z.string() }),
      query: z.object({ format: z.enum(OUTPUT_FORMAT_NAMES).optional() }),
    },
    responses: {
      200: {
        description: 'The output',
        headers: headerRefs('Content-Disposition'),
        content: {
          ...Object.fromEntries(Object.values(OUTPUT_FORMATS).map((type) => [type, { schema: z.string() }])),
          [OUTPUT_FORMATS.json]: { schema: z.union(JSON_SCHEMAS) },
        },
      },
      ...errorResponses(400, 401, 403, 404),
    },
  },
  'jobs:read',
  async (c) => {
    const { jobs } = c.get('services');
    const job = await jobOfCaller(c);
    if (job?.status !== 'succeeded') return { kind: 'not_found' };
    const format = outputFormat(c.req.query('format') ?? 'json');
    const formats: readonly OutputFormat[] = job.kind === 'voiceprint' ? ['json'] : OUTPUT_FORMAT_NAMES;
    const isKnown = format !== undefined && formats.includes(format);
    if (!isKnown) {
      // 404 comes before 400: without an output, a wrong format does not matter.
      const document = await jobs.openOutput(job.id);
      if (!document) return { kind: 'not_found' };
      await document.cancel();
      const message = `must be one of: ${formats.join(', ')}`;
      return { kind: 'invalid', errors: [{ field: 'format', message }] };
    }
    return async () => {
      const body = format === 'json' ? await jobs.openOutput(job.id) : await jobs.openTurns(job.id, format);
      if (!body) return { kind: 'not_found' };
      const headers = {
        'Content-Type': OUTPUT_FORMATS[format],
        'Content-Disposition': `attachment; filename="${job.id}.${endingOf(format)}"`,
      };
      if (c.req.method !== 'HEAD') return c.body(body, 200, headers);
      await body.cancel();
      return c.body(null, 200, headers);
    };
  },
);

const LAST_EVENT_ID_HEADER = 'Last-Event-ID';
/** Delay before a client connects again. */
const RECONNECT_MS = 2000;
const EVENT_STREAM = 'text/event-stream';

/** An event of the stream. */
const eventSchema = z
  .object({ id: z.string(), event: z.enum(['status', 'progress']), data: z.string() })
  .openapi('JobEvent', { description: '`data` is JSON: the job for `status`, `{jobId, progress}` for `progress`.' });

/** GET /v1/jobs/{jobId}/events: changes of a job as server-sent events. */
export const jobEvents = endpoint(
  {
    method: 'get',
    path: '/v1/jobs/{jobId}/events',
    operationId: 'watchJob',
    summary: 'Watch a job',
    request: {
      params: z.object({ jobId: z.string() }),
      headers: z.object({ [LAST_EVENT_ID_HEADER]: z.string().optional() }),
      query: z.object({ lastEventId: z.string().optional() }),
    },
    responses: {
      200: { description: 'Events `status` and `progress`', content: { [EVENT_STREAM]: { schema: eventSchema } } },
      204: { description: 'The last event has been sent before: do not connect again' },
      ...errorResponses(401, 403, 404),
    },
  },
  'jobs:read',
  async (c) => {
    const { jobs } = c.get('services');
    const accountId = c.get('principal').account.id;
    const jobId = c.req.param('jobId') ?? '';
    const job = await jobs.find(accountId, jobId);
    return job ? () => watch(c, accountId, job) : { kind: 'not_found' };
  },
);

function watch(c: AppContext, accountId: string, { id: jobId, status }: JobView): Response {
  const { jobs, log } = c.get('services');
  const sentId = eventId(c.req.header(LAST_EVENT_ID_HEADER) || c.req.query('lastEventId'));
  // Browsers connect again after every end of a stream; the standard defines 204 to stop that.
  if (sentId === FINAL_EVENT_ID && isTerminal(status)) return c.body(null, 204);
  // The final id of another job is meaningless for a job that has not ended.
  const afterId = sentId < FINAL_EVENT_ID ? sentId : -1;
  if (c.req.method === 'HEAD') return c.body(null, 200, { 'Content-Type': EVENT_STREAM });
  c.header('X-Accel-Buffering', 'no');
  const answer = streamSSE(c, async (stream) => {
    const startedAt = Date.now();
    const isKeyGood = keyCheck(c, 'jobs:read');
    try {
      await stream.write(`retry: ${RECONNECT_MS}\n\n`);
      const isOpen = async () => !stream.aborted && (await isKeyGood());
      for await (const item of jobs.watch(accountId, jobId, afterId, isOpen)) {
        if (item.kind === 'heartbeat') await stream.write(': still here\n\n');
        else await stream.writeSSE(toEvent(item));
      }
    } catch (error) {
      log('error', 'watch_failed', { requestId: c.get('requestId'), jobId, error: String(error) });
    }
    log('info', 'watch_ended', { jobId, aborted: stream.aborted, milliseconds: Date.now() - startedAt });
  });
  // The library sets no-cache, which would let caches store the answer to a key.
  c.header('Cache-Control', 'no-store');
  return answer;
}

/**
 * An unknown id starts the stream from the beginning: events report states, so that nothing is lost and little is
 * repeated.
 */
function eventId(text: string | undefined): number {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : -1;
}

function toEvent(item: Exclude<JobWatchItem, { kind: 'heartbeat' }>): { id: string; event: string; data: string } {
  const data = item.kind === 'status' ? describeJob(item.job) : { jobId: item.jobId, progress: item.progress };
  return { id: String(item.id), event: item.kind, data: JSON.stringify(data) };
}

const params = z.object({ jobId: z.string() });

/** POST /v1/jobs/{jobId}/cancel: cancels an unfinished job; does not change one that has ended. */
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
      // Without the scope to read jobs, the caller gets only the status.
      const { jobId, status, createdAt, updatedAt } = describeJob(job);
      return c.json({ jobId, status, createdAt, updatedAt });
    };
  },
);

/** DELETE /v1/jobs/{jobId}: deletes a job with all its data. */
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
