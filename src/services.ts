import codecsModule from '../wasm/codecs/codecs.wasm';
import dspModule from '../wasm/dsp/dsp.wasm';
import { type Config, type Env, readConfig } from './env.ts';
import type { AppServices, JobService, JobView } from './jobs/app-services.ts';
import { createJob } from './jobs/create.ts';
import type { Codecs, JobPorts, JobRecord } from './jobs/ports.ts';
import { now, pause, sleep } from './platform/clock.ts';
import { createJobStore } from './platform/d1/job-store.ts';
import { createUsage } from './platform/d1/usage.ts';
import { loadEngine, loadPlda } from './platform/engine.ts';
import { createKeyService } from './platform/keys.ts';
import { log } from './platform/log.ts';
import { createMediaService } from './platform/media.ts';
import { createProgress } from './platform/progress.ts';
import { createQueues } from './platform/queues.ts';
import { createQuota } from './platform/quota.ts';
import { createObjectStore } from './platform/r2-objects.ts';
import { createSources } from './platform/sources/index.ts';
import { identificationOf, voiceprintFault } from './platform/voiceprints.ts';
import { createDecoders } from './platform/wasm/codecs.ts';
import { createDsp } from './platform/wasm/dsp.ts';
import { createWebhookClient } from './platform/webhook-client.ts';
import { deriveWebhookSecret } from './platform/webhook-secret.ts';

let config: Config | undefined;
let codecs: Codecs | undefined;

function configOf(env: Env): Config {
  config ??= readConfig(env);
  return config;
}

function sharedDsp() {
  return createDsp(dspModule);
}
let dsp: ReturnType<typeof sharedDsp> | undefined;

/** The ports of the job engine over this Worker's bindings. Cheap: what is costly is made once per isolate, on first use. */
export function jobPorts(env: Env): JobPorts {
  const { allowLoopback, outputTtlMs, signingKey } = configOf(env);
  const media = createMediaService({ db: env.DB, bucket: env.BUCKET, signingKey, now });
  return {
    store: createJobStore(env.DB),
    queue: createQueues({ plans: env.PLANS, jobs: env.JOBS, webhooks: env.WEBHOOKS }),
    objects: createObjectStore(env.BUCKET),
    sources: createSources({ bucket: env.BUCKET, allowLoopback }),
    media,
    progress: createProgress(env.JOB_PROGRESS),
    webhook: createWebhookClient({ allowLoopback }),
    webhookSecret: (accountId, version) => deriveWebhookSecret(signingKey, accountId, version),
    codecs: () => {
      dsp ??= sharedDsp();
      codecs ??= { decoder: createDecoders(codecsModule), resampler: dsp.resampler };
      return codecs;
    },
    engine: () => {
      dsp ??= sharedDsp();
      return loadEngine(env.BUCKET, dsp);
    },
    plda: (embeddingId) => loadPlda(env.BUCKET, embeddingId),
    identification: identificationOf,
    log,
    now,
    pause,
    sleep,
    outputTtlMs,
  };
}

/** What the HTTP layer calls. */
export function appServices(env: Env): AppServices {
  const { allowLoopback, signingKey } = configOf(env);
  const ports = jobPorts(env);
  return {
    keys: createKeyService({ db: env.DB, signingKey }),
    jobs: jobService(ports),
    media: createMediaService({ db: env.DB, bucket: env.BUCKET, signingKey, now }),
    voiceprintFault,
    quota: createQuota(env.ACCOUNT_QUOTA),
    usage: createUsage(env.DB),
    policy: { allowLoopback, transcription: false },
    log,
  };
}

function jobService(ports: JobPorts): JobService {
  return {
    async create(input) {
      const created = await createJob(ports, input, crypto.randomUUID());
      return created.ok ? { ok: true, value: jobView(created.value) } : created;
    },
    async find(accountId, jobId) {
      const job = await ports.store.findOwned(accountId, jobId);
      if (!job) return undefined;
      const progress = job.status === 'running' ? await ports.progress.fraction(jobId) : undefined;
      return { ...jobView(job), progress };
    },
    async openOutput(jobId) {
      const job = await ports.store.find(jobId);
      if (!job?.outputKey || job.completedAt === undefined) return undefined;
      // The sweep may be minutes late; a read never is.
      if (job.completedAt + ports.outputTtlMs <= ports.now()) return undefined;
      return ports.objects.openStream(job.outputKey);
    },
  };
}

function jobView(job: JobRecord): JobView {
  return {
    id: job.id,
    kind: job.kind,
    status: job.status,
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    metadata: job.request.metadata,
    error: job.error,
  };
}
