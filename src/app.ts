import { OpenAPIHono } from '@hono/zod-openapi';
import { getPath } from 'hono/utils/url';
import { version } from '../package.json';
import { registerShared } from './contract/api-document.ts';
import type { AppServices } from './jobs/app-services.ts';
import { authenticate, countRequest } from './middleware/access.ts';
import type { AppEnv } from './middleware/context.ts';
import { answerHeaders, cors, drain, requestId, requestLog } from './middleware/every-request.ts';
import { refuse } from './middleware/refusals.ts';
import { healthz, keyTest, readUsage } from './routes/account-routes.ts';
import { diarize, identify, recountJob, voiceprint } from './routes/create-jobs.ts';
import { register } from './routes/endpoint.ts';
import { cancelJob, deleteJob, jobEvents, jobOutput, listJobs, listJobsV1, readJob } from './routes/job-routes.ts';
import { connectLive, createLive, readLive } from './routes/live-routes.ts';
import { mcp } from './routes/mcp-route.ts';
import { createDownload, createUpload, download, upload } from './routes/media-routes.ts';
import { createTranscription, listModels, readModel } from './routes/openai-transcriptions.ts';
import { type DocsAssets, documentation, type PlaygroundAssets, playground } from './routes/pages.ts';

/** All endpoints, in the order of the API document. */
export const ENDPOINTS = [
  keyTest,
  diarize,
  voiceprint,
  identify,
  readJob,
  cancelJob,
  deleteJob,
  recountJob,
  jobEvents,
  jobOutput,
  listJobs,
  listJobsV1,
  createUpload,
  upload,
  createDownload,
  download,
  createLive,
  readLive,
  connectLive,
  readUsage,
  listModels,
  readModel,
  createTranscription,
  healthz,
];

const HEALTH_PATH = healthz.route.getRoutingPath();

/**
 * The HTTP layer of the service.
 *
 * @param services builds the services of one request from its bindings
 * @param assets files of the reference page and of the playground
 */
export function createApp<Bindings extends object>(
  services: (env: Bindings, ctx: ExecutionContext) => AppServices,
  assets: { readonly docs: DocsAssets; readonly playground: PlaygroundAssets },
): OpenAPIHono<AppEnv> {
  // `/v1/test/` and `/v1/test` are the same endpoint.
  const app = new OpenAPIHono<AppEnv>({ getPath: (request) => withoutTrailingSlashes(getPath(request)) });

  app.use(requestId, answerHeaders, cors, drain);
  app.use(async (c, next) => {
    c.set('services', services(c.env as Bindings, c.executionCtx as ExecutionContext));
    return next();
  });
  app.use(requestLog);

  registerShared(app.openAPIRegistry);
  register(app, [
    ...ENDPOINTS,
    mcp((...request) => app.fetch(...request), version),
    ...documentation(app, version, assets.docs),
    ...playground(version, assets.playground),
  ]);

  // A client without a key must not learn which paths exist.
  app.all('/v1/*', authenticate, countRequest());
  app.all('/v2/*', authenticate, countRequest());
  app.notFound((c) => refuse(c, { kind: 'not_found' }));
  app.onError((error, c) => {
    const fields = { requestId: c.get('requestId'), error: error.message, stack: error.stack };
    const services = c.get('services') as AppServices | undefined;
    // A Worker with invalid settings has no services, and so no log.
    if (services) services.log('error', 'request_failed', fields);
    else console.error(JSON.stringify({ level: 'error', event: 'request_failed', ...fields }));
    // If the health check fails with an exception, the service cannot take jobs.
    return refuse(c, { kind: c.req.path === HEALTH_PATH ? 'unavailable' : 'internal' });
  });
  return app;
}

/** Without a pattern, which would take quadratic time on a path of many slashes. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}
