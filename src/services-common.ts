import { type Config, type Env, readConfig } from './env.ts';
import type { StepPorts } from './jobs/job-ports.ts';
import type { JobStore } from './jobs/job-store.ts';
import { createJobStore } from './platform/d1/job-rows.ts';
import { now, sleep } from './platform/event-loop.ts';
import { objectsIn } from './platform/jurisdiction.ts';
import { log } from './platform/log.ts';
import { createMediaService, type MediaStore } from './platform/media-store.ts';
import { createProgress } from './platform/object-stubs.ts';
import { createQueues, queueSet } from './platform/queues.ts';
import { createObjectStore } from './platform/r2-objects.ts';

let config: Config | undefined;

/** The settings of this isolate's Worker. */
export function configOf(env: Env): Config {
  config ??= readConfig(env);
  return config;
}

/** The objects of a class in the jurisdiction of this deployment. */
export const objectsOf = <Methods extends Rpc.DurableObjectBranded | undefined>(
  env: Env,
  namespace: DurableObjectNamespace<Methods>,
): DurableObjectNamespace<Methods> => objectsIn(configOf(env).jurisdiction, namespace);

/** Uploaded recordings over the Worker's bindings. */
export function mediaOf(env: Env): MediaStore {
  const { signingKey, previousSigningKey, s3 } = configOf(env);
  return createMediaService({ db: env.DB, bucket: env.BUCKET, signingKey, previousSigningKey, s3, now });
}

/** Ports to create, watch, cancel and clean up jobs, without models. */
export type ControlPorts = StepPorts<
  'queue' | 'objects' | 'progress' | 'log' | 'now' | 'sleep' | 'outputTtlMs',
  JobStore
>;

/** The ports without models over the Worker's bindings. */
export const controlPorts = (env: Env): ControlPorts => ({
  store: createJobStore(env.DB, configOf(env).maxWorkSeconds),
  queue: createQueues({
    ingest: queueSet(env, 'INGEST'),
    jobs: queueSet(env, 'JOBS'),
    priority: queueSet(env, 'PRIORITY'),
    transcripts: queueSet(env, 'TRANSCRIPTS'),
    webhooks: queueSet(env, 'WEBHOOKS'),
  }),
  objects: createObjectStore(env.BUCKET),
  progress: createProgress(objectsOf(env, env.JOB_PROGRESS)),
  log,
  now,
  sleep,
  outputTtlMs: configOf(env).outputTtlMs,
});
