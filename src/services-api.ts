import { TRANSCRIPTION_MODELS } from './contract/languages.ts';
import type { ApiEnv } from './env.ts';
import type { AppServices, JobService, JobView } from './jobs/app-services.ts';
import { createJob, createRecount } from './jobs/create-job.ts';
import { cancelJob, deleteJob } from './jobs/end-job.ts';
import { outboxId } from './jobs/job-messages.ts';
import type { JobRecord } from './jobs/job-record.ts';
import { attemptToRead, type CursorPort, listJobs, MIN_POLL_MS, SharedReads, watchJob } from './jobs/job-views.ts';
import { createLiveService, sweepStreams } from './jobs/live-streams.ts';
import { findMatches, openOutput, openTranscript, openTurns } from './jobs/stored-output.ts';
import { createKeyService } from './platform/api-keys.ts';
import { canPay } from './platform/d1/account-limits.ts';
import { canTakeJobs } from './platform/d1/health.ts';
import { createLiveStore } from './platform/d1/live-store.ts';
import { createUsage } from './platform/d1/usage-records.ts';
import { now } from './platform/event-loop.ts';
import { log } from './platform/log.ts';
import { packOfBuild, voiceprintFault } from './platform/models-in-use.ts';
import { createLiveObjects } from './platform/object-stubs.ts';
import { canFollowStreams } from './platform/onnx/manifest.ts';
import { createQuota } from './platform/quota.ts';
import { createFloodLimits } from './platform/rate-limiters.ts';
import { createStreamTokens, readCursor, signCursor } from './platform/signed-tokens.ts';
import { type ControlPorts, configOf, controlPorts, mediaOf, objectsOf } from './services-common.ts';

/** Rows and objects of live streams over this Worker's bindings. */
const livePorts = (env: ApiEnv) => ({
  store: createLiveStore(env.DB),
  objects: createLiveObjects(objectsOf(env, env.LIVE_STREAM)),
  now,
});

/** Ends live streams whose objects have failed to end them. */
export const sweepLive = (env: ApiEnv): Promise<void> =>
  sweepStreams({ ...livePorts(env), times: configOf(env).live, log });

/** The services of the HTTP layer. */
export function appServices(env: ApiEnv): AppServices {
  const { allowLoopback, signingKey, previousSigningKey, live, transcription } = configOf(env);
  const ports = controlPorts(env);
  return {
    keys: createKeyService({ db: env.DB, signingKey, previousSigningKey }),
    // The only client of the local service is its own user.
    floodLimits: createFloodLimits(allowLoopback ? {} : { client: env.CLIENT_FLOOD, key: env.KEY_FLOOD }, log),
    jobs: jobService(ports, {
      sign: (scope, position) => signCursor(signingKey, scope, position),
      read: (scope, cursor) => readCursor({ signingKey, previousSigningKey }, scope, cursor),
    }),
    media: mediaOf(env),
    live: createLiveService({
      ...livePorts(env),
      tokens: createStreamTokens({ signingKey, previousSigningKey }),
      tokenMs: live.tokenMs,
    }),
    voiceprintFault,
    quota: createQuota(objectsOf(env, env.ACCOUNT_QUOTA)),
    usage: createUsage(env.DB),
    credit: { suffices: (accountId) => canPay(env.DB, accountId, now()) },
    canTakeJobs: () => canTakeJobs(env.DB, now()),
    // Only the local service allows loopback; clients connect directly to its runtime.
    policy: {
      allowLoopback,
      directConnections: allowLoopback,
      transcription: TRANSCRIPTION_MODELS.filter((model) => transcription[model] !== undefined),
      liveStreams: canFollowStreams(packOfBuild()),
    },
    log,
  };
}

/** An isolate reads a job about once a second for all its watchers. */
const watchedJobs = new SharedReads<JobView | undefined>(0.9 * MIN_POLL_MS, now);

function jobService(ports: ControlPorts, cursors: CursorPort): JobService {
  const viewOf = (job: JobRecord) => jobView(job, ports.now() - ports.outputTtlMs);
  /** If this fails, the job is shown without progress. */
  const progressOf = (jobId: string) =>
    ports.progress.fraction(jobId).catch((error) => {
      ports.log('warn', 'progress_not_read', { jobId, error: String(error) });
      return undefined;
    });
  /** Shown only until the first progress. */
  const attemptOf = async (jobId: string) =>
    attemptToRead(await ports.store.outboxRow(outboxId({ step: 'ingest', jobId })), ports.now());
  const find: JobService['find'] = async (accountId, jobId) => {
    const job = await ports.store.findOwned(accountId, jobId);
    if (!job) return undefined;
    if (job.status !== 'running') return viewOf(job);
    const progress = await progressOf(jobId);
    return { ...viewOf(job), progress, attempt: progress ? undefined : await attemptOf(jobId) };
  };
  return {
    find,
    async create(input) {
      const created = await createJob(ports, input, crypto.randomUUID());
      return created.ok ? { ok: true, value: viewOf(created.value) } : created;
    },
    async recount(accountId, jobId, bounds, idempotency) {
      const source = await ports.store.findOwned(accountId, jobId);
      if (!source) return undefined;
      const created = await createRecount(ports, source, bounds, { id: crypto.randomUUID(), idempotency });
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

/** @param outputsFrom outputs of jobs that ended before this time have expired, also those that are only an error */
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
