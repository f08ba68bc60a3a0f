import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { persistDir } from './paths.ts';

/** Runs in a separate process, which hides Node's warning about an experimental module. Needs Node 22.13. */
const SCRUB = `
import { DatabaseSync } from 'node:sqlite';
for (const file of process.argv.slice(1)) {
  const database = new DatabaseSync(file);
  database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}`;

/**
 * Rewrites the database files of a service that is not running. SQLite keeps erased data, such as the address of a
 * recording, in free pages and in its log until it reuses them. The pragma `secure_delete` would prevent that, but D1
 * does not allow it.
 *
 * @throws if Node has no SQLite, or the files cannot be rewritten
 */
export async function scrubDatabase(stateDir: string): Promise<void> {
  const folder = join(persistDir(stateDir), 'd1');
  if (!existsSync(folder)) return;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.sqlite')).map((name) => join(folder, name));
  if (files.length === 0) return;
  await promisify(execFile)(process.execPath, ['--no-warnings', '--input-type=module', '-e', SCRUB, ...files]);
}
