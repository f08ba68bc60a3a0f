import codecsModule from '../wasm/codecs/codecs.wasm';
import { type JobsEnv, WORKERS_AI } from './env.ts';
import type { JobPorts } from './jobs/job-ports.ts';
import { workOf } from './jobs/work-keys.ts';
import { readBacklog } from './platform/d1/health.ts';
import { now, yieldUntilIdle } from './platform/event-loop.ts';
import { log } from './platform/log.ts';
import { nameOfModels, packOfBuild } from './platform/models-in-use.ts';
import { createCopies } from './platform/object-stubs.ts';
import { createOpenAiEngine } from './platform/openai-engine.ts';
import { deriveWebhookSecret } from './platform/signed-tokens.ts';
import type { HttpClient } from './platform/sources/http-client.ts';
import { createSources, httpClient } from './platform/sources/sources.ts';
import { createDecoders } from './platform/wasm/codecs.ts';
import { createWebhookClient } from './platform/webhook-client.ts';
import { createWorkersAiEngine } from './platform/workers-ai-engine.ts';
import { configOf, controlPorts, mediaOf, objectsOf } from './services-common.ts';
import { inference, resampler } from './services-inference.ts';

let codecs: ReturnType<JobPorts['codecs']> | undefined;

/** HTTP client for the servers of recordings that are copied. */
export const copyClient = (env: JobsEnv): HttpClient => httpClient({ allowLoopback: configOf(env).allowLoopback });

/** Logs the backlog of each queue, for alerts. */
export async function logBacklog(env: JobsEnv): Promise<void> {
  for (const backlog of await readBacklog(env.DB, now())) log('info', 'backlog', { ...backlog });
}

/**
 * The ports of the job engine over this Worker's bindings. Cheap: costly parts are created once per isolate, on first
 * use.
 */
export function jobPorts(env: JobsEnv): JobPorts {
  const { allowLoopback, signingKey, previousSigningKey, transcription } = configOf(env);
  return {
    ...controlPorts(env),
    ...inference(env.BUCKET, yieldUntilIdle),
    sources: createSources({ bucket: env.BUCKET, allowLoopback }),
    copies: createCopies(objectsOf(env, env.SOURCE_COPY)),
    media: mediaOf(env),
    webhook: createWebhookClient({ allowLoopback }),
    transcription: (model) => {
      const engine = transcription[model];
      if (engine === WORKERS_AI) return env.AI && createWorkersAiEngine(env.AI);
      return engine && createOpenAiEngine(engine);
    },
    webhookSecret: (accountId, version) => deriveWebhookSecret(signingKey, accountId, version),
    previousWebhookSecret: async (accountId, version) =>
      previousSigningKey && deriveWebhookSecret(previousSigningKey, accountId, version),
    codecs: () => {
      codecs ??= { decoder: createDecoders(codecsModule), resampler: resampler() };
      return codecs;
    },
    work: workOf(nameOfModels(packOfBuild())),
    pause: yieldUntilIdle,
  };
}
