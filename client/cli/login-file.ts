import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { writePrivateFile } from '../local/paths.ts';
import type { Announcement } from './announcement.ts';
import { CliError, EXIT } from './run.ts';

/** Returns the path of the login; ROLLCALL_CONFIG sets another folder. */
function loginPath(): string {
  const { ROLLCALL_CONFIG, XDG_CONFIG_HOME, APPDATA } = process.env;
  const folder = ROLLCALL_CONFIG || join(XDG_CONFIG_HOME || APPDATA || join(homedir(), '.config'), 'rollcall');
  return join(folder, 'login.json');
}

/**
 * Reads the service that `rollcall login` has stored.
 *
 * @throws CliError for a damaged file; otherwise the command would silently use another service
 */
export function readLogin(): Announcement | undefined {
  const path = loginPath();
  if (!existsSync(path)) return undefined;
  try {
    const { url, key } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Announcement>;
    if (typeof url === 'string' && typeof key === 'string') return { url, key };
  } catch {
    // Reported below.
  }
  throw new CliError(EXIT.usage, `${path} is damaged or cannot be read. Run "rollcall login" again.`);
}

/** @returns path of the file, which only this user can read */
export function saveLogin(service: Announcement): string {
  const path = loginPath();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writePrivateFile(path, `${JSON.stringify(service)}\n`);
  return path;
}

/** @returns whether a login was stored */
export function removeLogin(): boolean {
  const existed = existsSync(loginPath());
  rmSync(loginPath(), { force: true });
  return existed;
}
