import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Miniflare } from '../../client/local/miniflare.ts';
import type { IngestedLength } from '../../src/jobs/job-record.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';

const MANY_OBJECTS = `export default {
  async fetch(request, { BUCKET }) {
    await Promise.all((await request.json()).map((key) => BUCKET.put(key, 'x')));
    return new Response();
  },
};`;

/**
 * A real D1 database and R2 bucket in workerd's memory, migrated, and queues without consumers. The caller must
 * stop it.
 * @param before a migration: the database is left as it was before it
 */
export async function startStorage(before?: string) {
  const miniflare = new Miniflare({
    modules: true,
    script: MANY_OBJECTS,
    d1Databases: ['DB'],
    r2Buckets: ['BUCKET'],
    queueProducers: ['INGEST', 'JOBS', 'PRIORITY', 'TRANSCRIPTS', 'WEBHOOKS'],
    cf: false,
  });
  const db = (await miniflare.getD1Database('DB')) as unknown as D1Database;
  const bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  await migrate(db, { before });
  const queue = async (name: string) => [(await miniflare.getQueueProducer(name)) as unknown as Queue<unknown>];
  const queues = {
    ingest: await queue('INGEST'),
    jobs: await queue('JOBS'),
    priority: await queue('PRIORITY'),
    transcripts: await queue('TRANSCRIPTS'),
    webhooks: await queue('WEBHOOKS'),
  };
  /** Many small objects at once: from here each would be a request of its own. */
  const putAll = async (keys: readonly string[]): Promise<void> => {
    await miniflare.dispatchFetch('http://storage/', { method: 'POST', body: JSON.stringify(keys) });
  };
  return { db, bucket, queues, putAll, stop: () => miniflare.dispose() };
}

/** Makes the service's tables in an empty database; or applies the migrations from one on, or those before one. */
export async function migrate(db: D1Database, { from = '', before = '~' } = {}): Promise<void> {
  const folder = join(import.meta.dirname, '../../migrations');
  const files = readdirSync(folder).filter((file) => file >= from && file < before);
  for (const file of files.sort()) {
    const statements = readFileSync(join(folder, file), 'utf8')
      .replace(/^--.*$/gm, '')
      .split(';')
      .map((statement) => statement.trim())
      .filter((statement) => statement !== '');
    await db.batch(statements.map((statement) => db.prepare(statement)));
  }
}

/** Starts a job and brings it to the analysis of its recording. @returns whether it was not running already */
export async function startShards(
  store: JobStore,
  jobId: string,
  recording: IngestedLength,
  now: number,
): Promise<boolean> {
  const isStarted = await store.start(jobId, now);
  const job = await store.find(jobId);
  if (job) await store.finishIngest(job, recording, now);
  return isStarted;
}
