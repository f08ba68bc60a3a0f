import { z } from '@hono/zod-openapi';
import { streamSSE } from 'hono/streaming';
import type { JobView, JobWatchItem } from '../jobs/app-services.ts';
import { isTerminal } from '../jobs/state.ts';
import { FINAL_EVENT_ID } from '../jobs/watch.ts';
import { keyCheck } from '../middleware/auth.ts';
import type { AppContext } from '../middleware/context.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { describeJob } from './jobs.ts';

const LAST_EVENT_ID_HEADER = 'Last-Event-ID';
/** How long a client waits before it connects again. */
const RECONNECT_MS = 2000;
const EVENT_STREAM = 'text/event-stream';

/** One event as a reader of the stream gets it. */
const eventSchema = z
  .object({ id: z.string(), event: z.enum(['status', 'progress']), data: z.string() })
  .openapi('JobEvent', { description: '`data` is JSON: the job for `status`, `{jobId, progress}` for `progress`.' });

/** GET /v1/jobs/{jobId}/events: what becomes of a job, as server-sent events. */
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
  // Browsers connect again after every end of a stream; 204 is how the standard says that this was the last.
  if (sentId === FINAL_EVENT_ID && isTerminal(status)) return c.body(null, 204);
  // The last id of another job says nothing of one that has not ended.
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
  // The library says no-cache: what a key gets could be kept, to be asked for again.
  c.header('Cache-Control', 'no-store');
  return answer;
}

/** An id that is none of ours begins the stream anew: its events tell a state, so nothing is lost and little is repeated. */
function eventId(text: string | undefined): number {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : -1;
}

function toEvent(item: Exclude<JobWatchItem, { kind: 'heartbeat' }>): { id: string; event: string; data: string } {
  const data = item.kind === 'status' ? describeJob(item.job) : { jobId: item.jobId, progress: item.progress };
  return { id: String(item.id), event: item.kind, data: JSON.stringify(data) };
}
