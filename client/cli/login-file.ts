import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Announcement } from './announcement.ts';

/** ROLLCALL_CONFIG moves it. */
function loginPath(): string {
  const { ROLLCALL_CONFIG, XDG_CONFIG_HOME, APPDATA } = process.env;
  const folder = ROLLCALL_CONFIG || join(XDG_CONFIG_HOME || APPDATA || join(homedir(), '.config'), 'rollcall');
  return join(folder, 'login.json');
}

/** The service that `rollcall login` has stored. */
export function readLogin(): Announcement | undefined {
  try {
    const { url, key } = JSON.parse(readFileSync(loginPath(), 'utf8')) as Partial<Announcement>;
    return typeof url === 'string' && typeof key === 'string' ? { url, key } : undefined;
  } catch {
    return undefined;
  }
}

/** @returns path of the file, which only this user can read */
export function saveLogin(service: Announcement): string {
  const path = loginPath();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, `${JSON.stringify(service)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return path;
}

/** @returns whether there was one */
export function removeLogin(): boolean {
  const isThere = readLogin() !== undefined;
  rmSync(loginPath(), { force: true });
  return isThere;
}
