import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IngestedLength } from '../../src/jobs/job-record.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';

/** Applies the migrations in order: all by default, or those from `from` on and before `before`. */
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

/** Starts a job and moves it to the step `analyse`. @returns false if it was already running */
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
