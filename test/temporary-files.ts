import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a folder for the temporary files of a test run and removes it at the end of the run. Miniflare deletes its
 * folders in the background, which the end of a process interrupts, and killed processes delete nothing.
 */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-test-'));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 200 });
}
