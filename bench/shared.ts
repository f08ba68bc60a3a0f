import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { makePrivateDir, projectDir } from '../client/local/paths.ts';

/** Recordings and reference models next to the checkout, outside the repository. */
const SHARED_DIR = resolve(projectDir, '../shared');

/** A path in the shared folder; undefined if it does not exist. */
export function sharedPath(...parts: string[]): string | undefined {
  const path = join(SHARED_DIR, ...parts);
  return existsSync(path) ? path : undefined;
}

/**
 * Cache folder: long recordings, parts, results of sherpa-onnx. `ROLLCALL_BENCH_CACHE` overrides it.
 */
export function cacheDir(): string {
  const path = process.env.ROLLCALL_BENCH_CACHE ?? join(tmpdir(), 'rollcall-bench');
  makePrivateDir(path);
  return path;
}

/** Hours of the longest recording: `ROLLCALL_LONGEST_HOURS`, or 24. */
export function longestHours(): number {
  const hours = Number(process.env.ROLLCALL_LONGEST_HOURS ?? 24);
  if (!(hours > 0)) throw new Error('ROLLCALL_LONGEST_HOURS must be a number of hours');
  return hours;
}

/** Writes progress to stderr. */
export function logProgress(message: string): void {
  process.stderr.write(`${message}\n`);
}
