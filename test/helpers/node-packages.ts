import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makePrivateDir } from '../../client/local/paths.ts';

const INSTALL_TIMEOUT_MS = 5 * 60 * 1000;

/**
 * Installs exactly these npm packages once, in a kept folder below the system's temporary folder.
 * @param packages pinned, in npm's notation
 * @returns the folder; undefined after printing the reason if the installation fails
 */
export function folderWith(packages: readonly string[]): string | undefined {
  const name = createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 16);
  const parent = join(tmpdir(), 'rollcall-node');
  const folder = join(parent, name);
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return folder;
  try {
    makePrivateDir(parent);
    rmSync(folder, { recursive: true, force: true }); // an interrupted installation
    makePrivateDir(folder);
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const options = { cwd: folder, stdio: 'pipe', timeout: INSTALL_TIMEOUT_MS } as const;
    execFileSync('npm', ['install', ...flags, ...packages], options);
    writeFileSync(complete, '');
    return folder;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const { stderr, message } = error as { stderr?: Buffer; message: string };
    const reason = stderr?.toString().trim().split('\n').at(-1) || message;
    console.warn(`Skipped: ${packages.join(', ')} could not be installed: ${reason}`);
    return undefined;
  }
}
