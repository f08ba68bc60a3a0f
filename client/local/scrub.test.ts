import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createJobStore } from '../../src/platform/d1/job-rows.ts';
import { runSqlOn } from './database.ts';
import { startLocalService } from './service.ts';

const ADDRESS = 'https://example.com/private-recording.mp3';
const JOBS = 50;

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-scrub-'));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 }));

const filesContaining = (text: string): string[] =>
  readdirSync(stateDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);

/** Creates finished jobs whose data was erased when it expired. */
async function createErasedJobs(): Promise<void> {
  const service = await startLocalService({ stateDir });
  const run = runSqlOn(service.db);
  await run("INSERT INTO accounts (id, name, created_at) VALUES ('a', 'a', 0)");
  const ids = Array.from({ length: JOBS }, (_, i) => `job-${i}`);
  for (const id of ids) {
    await run(
      `INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at, completed_at)
       VALUES (?, 'a', 'diarize', 'succeeded', ?, 0, 0, ?)`,
      id,
      JSON.stringify({ url: ADDRESS, model: 'community-1' }),
      // The service deletes rows of jobs that ended a month ago.
      Date.now(),
    );
  }
  await createJobStore(service.db as unknown as D1Database).markCleaned(ids, Date.now());
  await service.stop();
}

it('removes erased addresses from the database files at the start, and keeps every row', async () => {
  await createErasedJobs();
  expect(filesContaining(ADDRESS), 'SQLite leaves erased data in its files').not.toEqual([]);
  const service = await startLocalService({ stateDir });
  try {
    const [row] = await runSqlOn(service.db)("SELECT COUNT(*) AS jobs FROM jobs WHERE request LIKE '%community-1%'");
    expect(row?.jobs).toBe(JOBS);
  } finally {
    await service.stop();
  }
  expect(filesContaining(ADDRESS)).toEqual([]);
}, 120_000);
