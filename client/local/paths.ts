import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A state folder, or another local file, that cannot be used as it is; the command prints `message`. */
export class LocalStateError extends Error {}

/** Root of the repository: where wrangler.toml, models/ and migrations/ are. */
export const projectDir = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Whether this is an installed package, whose folder npm owns, and not a checkout. */
export const isInstalled = projectDir.split(sep).includes('node_modules');

/** Folder of local data: states of the service and of kept services, and in a checkout the bundles. */
export const localDir = isInstalled ? userStateDir() : join(projectDir, '.wrangler', 'rollcall');

function userStateDir(): string {
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'rollcall');
  return join(LOCALAPPDATA || XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'rollcall');
}

/** State of the service that `npm start` runs; `ROLLCALL_STATE` moves it. */
export function defaultStateDir(): string {
  const moved = process.env.ROLLCALL_STATE;
  return moved ? resolve(moved) : localDir;
}

/**
 * Where Miniflare keeps database, recordings and outputs, in the layout of `wrangler --persist-to`. Closed to other
 * users even if the state folder is an existing open one.
 */
export const persistDir = (stateDir: string): string => join(stateDir, 'v3');

/**
 * Makes a folder that only its owner may enter, for keys and recordings. An existing folder keeps its mode.
 *
 * @param options `closes` an existing folder, too
 * @throws LocalStateError if the folder cannot be made
 */
export function makePrivateDir(path: string, options: { readonly closes?: boolean } = {}): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (options.closes) chmodSync(path, 0o700);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isInFile = code === 'EEXIST' || code === 'ENOTDIR';
    const why = isInFile ? 'is, or lies in, a file' : `cannot be made (${code})`;
    throw new LocalStateError(`The folder ${path} ${why}.${adviceOn(path, isInFile)}`);
  }
}

/** Writes a file that only this user can read. Atomic, so that a kill leaves the old content or the new one. */
export function writePrivateFile(path: string, text: string): void {
  const scratch = `${path}.${process.pid}.tmp`;
  writeFileSync(scratch, text, { mode: 0o600 });
  renameSync(scratch, path);
}

function adviceOn(path: string, isInFile: boolean): string {
  const isMoved = process.env.ROLLCALL_STATE && defaultStateDir() === resolve(path);
  if (isMoved) return " ROLLCALL_STATE names the folder for the service's state.";
  return !isInFile && path.startsWith(projectDir) ? ' The checkout must be writable by this user.' : '';
}

/** Where `npm pack` puts the bundles of the Workers. */
export const prebuiltDir = (root: string): string => join(root, 'dist', 'workers');

/** Where the bundles of a checkout are kept. */
export function bundleCacheDir(root: string): string {
  return join(root, '.wrangler', 'rollcall', 'bundle');
}
