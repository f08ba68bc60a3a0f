import codecsModule from '../wasm/codecs/codecs.wasm';
import dspModule from '../wasm/dsp/dsp.wasm';
import { TRANSCRIPTION_MODELS } from './contract/languages.ts';
import { type Config, type Env, readConfig, WORKERS_AI } from './env.ts';
import type { AppServices, JobService, JobView } from './jobs/app-services.ts';
import { cancelJob, deleteJob } from './jobs/cancel.ts';
import { createJob } from './jobs/create.ts';
import { findMatches, openOutput, openTurns } from './jobs/job-output.ts';
import { workOf } from './jobs/keys.ts';
import { type CursorPort, listJobs } from './jobs/list.ts';
import type { LiveTimes } from './jobs/live/limits.ts';
import { createLiveService } from './jobs/live/service.ts';
import { sweepStreams } from './jobs/live/sweep.ts';
import type { JobPorts, JobRecord } from './jobs/ports.ts';
import { SharedReads } from './jobs/shared-reads.ts';
import { openTranscript } from './jobs/spoken-output.ts';
import { MIN_POLL_MS, watchJob } from './jobs/watch.ts';
import { now, pause, sleep } from './platform/clock.ts';
import { createCopies } from './platform/copies.ts';
import { canPay } from './platform/d1/credit.ts';
import { createJobStore } from './platform/d1/job-store.ts';
import { createLiveStore } from './platform/d1/live-store.ts';
import { createUsage } from './platform/d1/usage.ts';
import { loadEngine, loadPlda } from './platform/engine.ts';
import { createKeyService } from './platform/keys.ts';
import { createLiveObjects } from './platform/live-objects.ts';
import { log } from './platform/log.ts';
import { createMediaService } from './platform/media.ts';
import { nameOfModels, packOfBuild } from './platform/models-in-use.ts';
import { canFollowStreams } from './platform/onnx/manifest.ts';
import { readCursor, signCursor } from './platform/page-cursor.ts';
import { createProgress } from './platform/progress.ts';
import { createQueues, queueSet } from './platform/queues.ts';
import { createQuota } from './platform/quota.ts';
import { createObjectStore } from './platform/r2-objects.ts';
import type { HttpClient } from './platform/sources/http-client.ts';
import { createSources, httpClient } from './platform/sources/index.ts';
import { createOpenAiEngine } from './platform/transcription/openai.ts';
import { createWorkersAiEngine } from './platform/transcription/workers-ai.ts';
import { identificationOf, voiceprintFault } from './platform/voiceprints.ts';
import { createDecoders } from './platform/wasm/codecs.ts';
import { createDsp } from './platform/wasm/dsp.ts';
import { createWebhookClient } from './platform/webhook-client.ts';
import { deriveWebhookSecret } from './platform/webhook-secret.ts';

let config: Config | undefined;
let codecs: ReturnType<JobPorts['codecs']> | undefined;

function configOf(env: Env): Config {
  config ??= readConfig(env);
  return config;
}

/** How long live streams may wait, rest and last. */
export const liveTimes = (env: Env): LiveTimes => configOf(env).live;

/** How the servers of recordings are asked that are copied. */
export const copyClient = (env: Env): HttpClient => httpClient({ allowLoopback: configOf(env).allowLoopback });

function sharedDsp() {
  return createDsp(dspModule);
}
let dsp: ReturnType<typeof sharedDsp> | undefined;

/**
 * The ports of the job engine over this Worker's bindings. Cheap: what is costly is made once per isolate, on first
 * use.
 */
export function jobPorts(env: Env): JobPorts {
  const { allowLoopback, outputTtlMs, signingKey, s3, transcription, maxWorkSeconds } = configOf(env);
  const media = createMediaService({ db: env.DB, bucket: env.BUCKET, signingKey, s3, now });
  const work = workOf(nameOfModels(packOfBuild()));
  return {
    store: createJobStore(env.DB, maxWorkSeconds),
    queue: createQueues({
      ingest: queueSet(env, 'INGEST'),
      jobs: queueSet(env, 'JOBS'),
      priority: queueSet(env, 'PRIORITY'),
      transcripts: queueSet(env, 'TRANSCRIPTS'),
      webhooks: queueSet(env, 'WEBHOOKS'),
    }),
    objects: createObjectStore(env.BUCKET),
    sources: createSources({ bucket: env.BUCKET, allowLoopback }),
    copies: createCopies(env.SOURCE_COPY),
    media,
    progress: createProgress(env.JOB_PROGRESS),
    webhook: createWebhookClient({ allowLoopback }),
    transcription: (model) => {
      const engine = transcription[model];
      if (engine === WORKERS_AI) return env.AI && createWorkersAiEngine(env.AI);
      return engine && createOpenAiEngine(engine);
    },
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
    work,
    plda: (embeddingId) => loadPlda(env.BUCKET, embeddingId),
    identification: identificationOf,
    log,
    now,
    pause,
    sleep,
    outputTtlMs,
  };
}

/** Rows and objects of live streams over this Worker's bindings. */
const livePorts = (env: Env) => ({
  store: createLiveStore(env.DB),
  objects: createLiveObjects(env.LIVE_STREAM),
  now,
});

/** Ends live streams that nothing else has ended. */
export const sweepLive = (env: Env): Promise<void> => sweepStreams({ ...livePorts(env), times: liveTimes(env), log });

/** What the HTTP layer calls. */
export function appServices(env: Env): AppServices {
  const { allowLoopback, signingKey, s3, live, transcription } = configOf(env);
  const ports = jobPorts(env);
  return {
    keys: createKeyService({ db: env.DB, signingKey }),
    jobs: jobService(ports, {
      sign: (scope, position) => signCursor(signingKey, scope, position),
      read: (scope, cursor) => readCursor(signingKey, scope, cursor),
    }),
    media: createMediaService({ db: env.DB, bucket: env.BUCKET, signingKey, s3, now }),
    live: createLiveService({ ...livePorts(env), tokenMs: live.tokenMs }),
    voiceprintFault,
    quota: createQuota(env.ACCOUNT_QUOTA),
    usage: createUsage(env.DB),
    credit: { suffices: (accountId) => canPay(env.DB, accountId, now()) },
    // What opens loopback is the local service, whose runtime has nothing in front of it.
    policy: {
      allowLoopback,
      directConnections: allowLoopback,
      transcription: TRANSCRIPTION_MODELS.filter((model) => transcription[model] !== undefined),
      liveStreams: canFollowStreams(packOfBuild()),
    },
    log,
  };
}

/** However many watch a job, an isolate reads it about once a second. */
const watchedJobs = new SharedReads<JobView | undefined>(0.9 * MIN_POLL_MS, now);

function jobService(ports: JobPorts, cursors: CursorPort): JobService {
  const viewOf = (job: JobRecord) => jobView(job, ports.now() - ports.outputTtlMs);
  /** Only a hint: without an answer the job is shown without it. */
  const progressOf = (jobId: string) =>
    ports.progress.fraction(jobId).catch((error) => {
      ports.log('warn', 'progress_not_read', { jobId, error: String(error) });
      return undefined;
    });
  const find: JobService['find'] = async (accountId, jobId) => {
    const job = await ports.store.findOwned(accountId, jobId);
    if (!job) return undefined;
    return { ...viewOf(job), progress: job.status === 'running' ? await progressOf(jobId) : undefined };
  };
  return {
    find,
    async create(input) {
      const created = await createJob(ports, input, crypto.randomUUID());
      return created.ok ? { ok: true, value: viewOf(created.value) } : created;
    },
    hasReplay: async (accountId, key) => (await ports.store.findReplay(accountId, key, ports.now())) !== undefined,
    openOutput: async (jobId) => openOutput(ports, await ports.store.find(jobId)),
    async openTurns(jobId, format) {
      const job = await ports.store.find(jobId);
      return job && openTurns(ports, job, format);
    },
    openTranscript: async (jobId) => openTranscript(ports, await ports.store.find(jobId)),
    findMatches: async (jobId) => findMatches(ports, await ports.store.find(jobId)),
    list: (accountId, query) => listJobs(ports.store, cursors, accountId, query),
    async cancel(accountId, jobId) {
      const job = await cancelJob(ports, accountId, jobId);
      return job && viewOf(job);
    },
    remove: (accountId, jobId) => deleteJob(ports, accountId, jobId),
    watch: (accountId, jobId, afterId, isOpen) => {
      const read = () => watchedJobs.get(`${accountId}/${jobId}`, () => find(accountId, jobId));
      return watchJob({ read, now: ports.now, sleep: ports.sleep }, afterId, isOpen);
    },
  };
}

/** @param outputsFrom outputs of jobs that ended before are gone, also those that only tell an error */
function jobView(job: JobRecord, outputsFrom: number): JobView {
  return {
    id: job.id,
    kind: job.kind,
    status: job.status,
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    metadata: job.request.metadata,
    error: (job.completedAt ?? outputsFrom + 1) > outputsFrom ? job.error : undefined,
  };
}
