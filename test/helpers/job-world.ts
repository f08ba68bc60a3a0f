import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { AudioPorts } from '../../src/audio/recording.ts';
import { CHUNK_SAMPLES } from '../../src/ingest/chunks.ts';
import type { CreateJob } from '../../src/jobs/app-services.ts';
import { createJob } from '../../src/jobs/create-job.ts';
import { findIngest, saveIngest, shardCountOf } from '../../src/jobs/ingest-state.ts';
import type { JobPorts, ObjectStore, Queued } from '../../src/jobs/job-ports.ts';
import type { IngestedRecording, IngestState, JobRecord } from '../../src/jobs/job-record.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';
import { chunkKey } from '../../src/jobs/work-keys.ts';
import { createJobStore } from '../../src/platform/d1/job-rows.ts';
import { createMediaService } from '../../src/platform/media-store.ts';
import { identificationOf } from '../../src/platform/models-in-use.ts';
import { createObjectStore } from '../../src/platform/r2-objects.ts';
import { deriveWebhookSecret } from '../../src/platform/signed-tokens.ts';
import { createSources, type SourcesOptions } from '../../src/platform/sources/sources.ts';
import { createWebhookClient } from '../../src/platform/webhook-client.ts';
import { audioPorts } from './audio.ts';
import { startShards } from './database.ts';
import { fakePorts } from './fake-models.ts';
import { startStorage } from './storage.ts';
import { pcm16 } from './wav.ts';

/** Start of each test's clock, milliseconds since the Unix epoch. */
export const NOW = 1_800_000_000_000;
/** Version of the stored states, and the tag in the names of chunks and parts of the first file. */
export const WORK = 'v';
export const TAG = `${WORK}.0`;
const SIGNING_KEY = Buffer.alloc(32).toString('base64');

let codecs: AudioPorts | undefined;
function codecsOf(): AudioPorts {
  codecs ??= audioPorts();
  return codecs;
}

/** Facts of a completely read recording, of one second by default. */
export function recordingOf(changes: Partial<IngestedRecording> = {}): IngestedRecording {
  const totalSamples = changes.totalSamples ?? 16_000;
  const facts = { format: 'wav', codec: 'pcm', sampleRateHz: 16_000, channels: 1 };
  return {
    facts,
    totalSamples,
    durationSeconds: totalSamples / 16_000,
    shardCount: shardCountOf(totalSamples),
    ...changes,
  };
}

/** The ingest state of a completely read recording. */
export function ingestedState(changes: Partial<IngestedRecording> = {}): IngestState {
  const recording = recordingOf(changes);
  return {
    generation: 0,
    identity: 'a file',
    model: 'precision-2',
    chunks: Math.ceil(recording.totalSamples / CHUNK_SAMPLES),
    checkpoint: { sample: 0 },
    recording,
  };
}

/** Yields to other work, as the platform's scheduler does. */
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

interface Storage {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  stop(): Promise<void>;
}

/**
 * The steps of jobs on a real database and a real bucket, for the tests of one file. Each test has a new account, a new
 * job and a clock that it sets. Sources and receivers are servers that the test starts on this machine. Messages are
 * recorded, not delivered.
 *
 * @param start starts the database and the bucket
 */
export function useJobs(start: () => Promise<Storage> = startStorage) {
  let storage: Storage;
  let made = 0;
  const sources = (options: Partial<SourcesOptions> = {}) =>
    createSources({ bucket: storage.bucket, allowLoopback: true, backoffMs: [1, 1, 1], pause: turn, ...options });
  const world = {
    accountId: '',
    id: '',
    now: NOW,
    /** Sent messages, without the first message of a job. */
    sent: [] as Queued[],
    /** Numbers of shards that were passed to the job's object. */
    ready: [] as number[],
    /** Addresses whose copy was requested. */
    copied: [] as string[],
    ports: {} as JobPorts,
    get storage() {
      return storage;
    },
    sources,
    /** The same ports with some methods of the database or the bucket replaced. */
    withStore: (changes: Partial<JobStore>): JobPorts => ({
      ...world.ports,
      store: { ...world.ports.store, ...changes },
    }),
    withObjects: (changes: Partial<ObjectStore>): JobPorts => ({
      ...world.ports,
      objects: { ...world.ports.objects, ...changes },
    }),
    /** Another job of the same account. */
    another() {
      world.id = `job-${made++}`;
    },
    async create(request: object = {}, kind = 'diarize'): Promise<JobRecord> {
      const whole = { url: 'https://example.com/a.wav', model: 'precision-2', ...request };
      const input = { accountId: world.accountId, kind, request: whole } as CreateJob;
      const created = await createJob(world.ports, input, world.id);
      if (!created.ok) throw new Error(created.error.kind);
      world.sent.length = 0;
      return created.value;
    },
    /** Creates a running job whose recording has been read: its step is `analyse`. */
    async running(recording: Partial<IngestedRecording> = {}, request: object = {}): Promise<JobRecord> {
      await world.create(request);
      const state = ingestedState(recording);
      await world.putState(state);
      await startShards(world.ports.store, world.id, state.recording!, world.now);
      return world.record();
    },
    /** Stores the ingest state of the job, also over an existing one. */
    async putState(state: IngestState): Promise<void> {
      const before = await findIngest(world.ports, world.id);
      await saveIngest(world.ports, world.id, state, before?.etag);
    },
    async state(): Promise<IngestState | undefined> {
      return (await findIngest(world.ports, world.id))?.state;
    },
    /** Stores a recording as chunks. */
    async putChunks(samples: Float32Array, tag = TAG): Promise<void> {
      for (let chunk = 0; chunk * CHUNK_SAMPLES < samples.length; chunk++) {
        const part = samples.subarray(chunk * CHUNK_SAMPLES, (chunk + 1) * CHUNK_SAMPLES);
        await world.ports.objects.put(chunkKey(world.id, chunk, tag), pcm16(part));
      }
    },
    async record(): Promise<JobRecord> {
      const job = await world.ports.store.find(world.id);
      if (!job) throw new Error(`no job ${world.id}`);
      return job;
    },
    /** The message of a step of the job: `ingest`, `analyse` … */
    row: (step: string) => world.ports.store.outboxRow(`${world.id}/${step}`),
    /** Steps of the job that still have a message. */
    async steps(): Promise<string[]> {
      const { rows } = await world.ports.store.overdue(Infinity, 1000, { jobId: world.id });
      return rows.map((row) => row.id.slice(world.id.length + 1)).sort();
    },
    messages: () => world.sent.map(({ message }) => message),
    workKeys: () => world.ports.objects.list(`work/${world.id}/`, 1000),
  };

  beforeAll(async () => {
    storage = await start();
  });
  afterAll(() => storage?.stop());
  beforeEach(async () => {
    world.accountId = `account-${made++}`;
    world.another();
    world.now = NOW;
    world.sent = [];
    world.copied = [];
    world.ready = [];
    const { db, bucket } = storage;
    await db
      .prepare('INSERT INTO accounts (id, name, subscribed, created_at) VALUES (?1, ?1, 1, 0)')
      .bind(world.accountId)
      .run();
    const now = () => world.now;
    world.ports = {
      store: createJobStore(db),
      objects: createObjectStore(bucket),
      sources: sources(),
      copies: { request: async (_jobId, url) => void world.copied.push(url) },
      media: createMediaService({ db, bucket, signingKey: SIGNING_KEY, now }),
      queue: {
        send: async (message, delaySeconds) => void world.sent.push({ message, delaySeconds }),
        sendAll: async (queued) => void world.sent.push(...queued),
      },
      progress: {
        begin: async () => undefined,
        reportIngest: async () => undefined,
        ready: async (_jobId, _tag, shards) => void world.ready.push(shards),
        expect: async (_jobId, _tag, shards) => void world.ready.push(shards),
        startShard: async () => ({ kind: 'run', starts: 1 }),
        report: async () => true,
        putBack: async () => undefined,
        partDone: async () => true,
        restart: async () => undefined,
        resend: async () => undefined,
        end: async () => undefined,
        fraction: async () => 0,
      },
      webhook: createWebhookClient({ allowLoopback: true }),
      transcription: () => undefined,
      webhookSecret: (accountId, version) => deriveWebhookSecret(SIGNING_KEY, accountId, version),
      codecs: codecsOf,
      engine: async () => ({ ...fakePorts(), memoryBytes: () => 0 }),
      work: WORK,
      plda: async () => undefined,
      identification: identificationOf,
      log: () => undefined,
      now,
      pause: async () => undefined,
      sleep: async () => undefined,
      outputTtlMs: 24 * 3600_000,
    };
  });
  return world;
}
