import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type AudioIndex, probeAudio } from '../../src/audio/index.ts';
import type { CreateJob } from '../../src/jobs/app-services.ts';
import { createJob } from '../../src/jobs/create.ts';
import { planKey } from '../../src/jobs/keys.ts';
import { PlanMemory } from '../../src/jobs/plan-memory.ts';
import type { Codecs, JobPlan, JobPorts, JobRecord, JobStore, ObjectStore, Queued } from '../../src/jobs/ports.ts';
import { createJobStore } from '../../src/platform/d1/job-store.ts';
import { createMediaService } from '../../src/platform/media.ts';
import { createObjectStore } from '../../src/platform/r2-objects.ts';
import { createSources, type SourcesOptions } from '../../src/platform/sources/index.ts';
import { identificationOf } from '../../src/platform/voiceprints.ts';
import { createWebhookClient } from '../../src/platform/webhook-client.ts';
import { deriveWebhookSecret } from '../../src/platform/webhook-secret.ts';
import { audioPorts, memorySource } from './audio.ts';
import { startStorage } from './database.ts';
import { fakePorts } from './fake-models.ts';

/** Where the clock of each test begins. */
export const NOW = 1_800_000_000_000;
/** Of which version plans and parts are. */
export const WORK = 'v';
const SIGNING_KEY = Buffer.alloc(32).toString('base64');

let codecs: Codecs | undefined;
function codecsOf(): Codecs {
  codecs ??= audioPorts();
  return codecs;
}

/** What a plan says of a recording. */
export async function indexOf(bytes: Uint8Array): Promise<AudioIndex> {
  const probed = await probeAudio(memorySource(bytes), codecsOf().decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return probed.value;
}

interface Storage {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  stop(): Promise<void>;
}

/**
 * The steps of jobs on a real database and a real bucket, for the tests of one file. Each test has an account and a job of its own, and a clock
 * that it moves by hand. Sources and receivers are whatever servers the test starts on this machine; messages are noted and go nowhere.
 *
 * @param start where the database and the bucket are
 */
export function useJobs(start: () => Promise<Storage> = startStorage) {
  let storage: Storage;
  let made = 0;
  const sources = (options: Partial<SourcesOptions> = {}) =>
    createSources({ bucket: storage.bucket, allowLoopback: true, backoffMs: [1, 1, 1], ...options });
  const world = {
    accountId: '',
    id: '',
    now: NOW,
    /** What was sent, without the first message of a job. */
    sent: [] as Queued[],
    ports: {} as JobPorts,
    get storage() {
      return storage;
    },
    sources,
    /** The same ports, some methods of the database or of the bucket replaced. */
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
    /** A job in work by that plan. */
    async running(plan: Partial<JobPlan> & Pick<JobPlan, 'shards'>, request: object = {}): Promise<JobRecord> {
      await world.create(request);
      await world.ports.objects.put(planKey(world.id, WORK), new TextEncoder().encode(JSON.stringify(plan)));
      const shardCount = plan.shards.length;
      await world.ports.store.start(world.id, { shardCount, durationSeconds: 60 }, world.now);
      return world.record();
    },
    async record(): Promise<JobRecord> {
      const job = await world.ports.store.find(world.id);
      if (!job) throw new Error(`no job ${world.id}`);
      return job;
    },
    /** The message of a step of the job: `plan`, `shard/0` … */
    row: (step: string) => world.ports.store.outboxRow(`${world.id}/${step}`),
    /** The steps that messages are left for. */
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
      media: createMediaService({ db, bucket, signingKey: SIGNING_KEY, now }),
      queue: {
        send: async (message, delaySeconds) => void world.sent.push({ message, delaySeconds }),
        sendAll: async (queued) => void world.sent.push(...queued),
      },
      progress: {
        begin: async () => undefined,
        report: async () => undefined,
        partDone: async () => true,
        fraction: async () => 0,
      },
      webhook: createWebhookClient({ allowLoopback: true }),
      webhookSecret: (accountId, version) => deriveWebhookSecret(SIGNING_KEY, accountId, version),
      codecs: codecsOf,
      engine: async () => ({ ...fakePorts(), memoryBytes: () => 0 }),
      work: WORK,
      plans: new PlanMemory(),
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
