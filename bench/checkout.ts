import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { cacheDir } from './shared.ts';

/** Copies what a clone would hold, with the changes that are not committed, into a new folder. */
export function copyCheckout(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(cacheDir(), 'checkout-'));
  const listing = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: projectDir,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const name of listing.split('\0')) {
    // A file that was deleted and not committed is still listed; a linked node_modules is no folder to git's ignore rules.
    if (name === '' || name === 'node_modules' || !existsSync(join(projectDir, name))) continue;
    mkdirSync(join(folder, dirname(name)), { recursive: true });
    cpSync(join(projectDir, name), join(folder, name));
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }) };
}
