import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { makePrivateDir, projectDir } from '../client/local/paths.ts';

/** Recordings and reference models beside the checkout; not part of the repository. */
const SHARED_DIR = resolve(projectDir, '../shared');

/** A path below the shared folder, undefined where it is missing. */
export function sharedPath(...parts: string[]): string | undefined {
  const path = join(SHARED_DIR, ...parts);
  return existsSync(path) ? path : undefined;
}

/**
 * Folder for what is made once and used again: long recordings, the other engine's sweeps. `ROLLCALL_BENCH_CACHE` moves
 * it.
 */
export function cacheDir(): string {
  const path = process.env.ROLLCALL_BENCH_CACHE ?? join(tmpdir(), 'rollcall-bench');
  makePrivateDir(path);
  return path;
}

/** Hours of the longest recording that is measured: `ROLLCALL_LONGEST_HOURS`, else a day. */
export function longestHours(): number {
  const hours = Number(process.env.ROLLCALL_LONGEST_HOURS ?? 24);
  if (!(hours > 0)) throw new Error('ROLLCALL_LONGEST_HOURS must be a number of hours');
  return hours;
}

/** Progress of the bench, on stderr. */
export function say(message: string): void {
  process.stderr.write(`${message}\n`);
}
