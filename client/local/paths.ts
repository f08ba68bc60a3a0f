import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A state folder or another local file cannot be used; the command prints `message`. */
export class LocalStateError extends Error {}

/** Root of the repository, with wrangler.toml, models/ and migrations/. */
export const projectDir = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Whether this is an installed package, whose folder npm manages, and not a checkout. */
export const isInstalled = projectDir.split(sep).includes('node_modules');

/** Folder of local data: states of the service and of kept services; in a checkout also the bundles. */
export const localDir = isInstalled ? userStateDir() : join(projectDir, '.wrangler', 'rollcall');

function userStateDir(): string {
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'rollcall');
  return join(LOCALAPPDATA || XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'rollcall');
}

/** State folder of the service that `npm start` runs; `ROLLCALL_STATE` sets another one. */
export function defaultStateDir(): string {
  const stateFolder = process.env.ROLLCALL_STATE;
  return stateFolder ? resolve(stateFolder) : localDir;
}

/**
 * Folder in which Miniflare stores database, recordings and outputs, in the layout of `wrangler --persist-to`. Private
 * even if the state folder already existed and is open to other users.
 */
export const persistDir = (stateDir: string): string => join(stateDir, 'v3');

/**
 * Creates a folder that only its owner may enter, for keys and recordings. An existing folder keeps its mode.
 *
 * @param options `closes` also makes an existing folder private
 * @throws LocalStateError if the folder cannot be created
 */
export function makePrivateDir(path: string, options: { readonly closes?: boolean } = {}): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (options.closes) chmodSync(path, 0o700);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isInFile = code === 'EEXIST' || code === 'ENOTDIR';
    const reason = isInFile ? 'is, or lies in, a file' : `cannot be created (${code})`;
    throw new LocalStateError(`The folder ${path} ${reason}.${adviceOn(path, isInFile)}`);
  }
}

/** Writes a file that only this user can read. Atomic: after a kill the file has the old or the new content. */
export function writePrivateFile(path: string, text: string): void {
  const scratch = `${path}.${process.pid}.tmp`;
  writeFileSync(scratch, text, { mode: 0o600 });
  renameSync(scratch, path);
}

function adviceOn(path: string, isInFile: boolean): string {
  const isStateFolder = process.env.ROLLCALL_STATE && defaultStateDir() === resolve(path);
  if (isStateFolder) return " ROLLCALL_STATE names the folder for the service's state.";
  return !isInFile && path.startsWith(projectDir) ? ' The checkout must be writable by this user.' : '';
}

/** Folder in which `npm pack` puts the bundles of the Workers. */
export const prebuiltDir = (root: string): string => join(root, 'dist', 'workers');

/** Folder of the bundles of a checkout. */
export function bundleCacheDir(root: string): string {
  return join(root, '.wrangler', 'rollcall', 'bundle');
}
