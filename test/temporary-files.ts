import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Gives a test run a folder for its temporary files, and takes it away afterwards with all that was left in it:
 * Miniflare deletes its own folder in the background, which the end of a test's process cuts short, and what a test
 * kills deletes nothing.
 */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-test-'));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 200 });
}
