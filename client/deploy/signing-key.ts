import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDir } from '../local/paths.ts';
import { DEFAULT_NAME } from './naming.ts';

/**
 * Returns the path of the only readable copy of the deployed service's signing key: secrets cannot be read back. It is
 * not in `.wrangler/`, which users may delete to reset local state.
 */
export function signingKeyPath(root: string, instance = DEFAULT_NAME): string {
  return join(folderOf(root, instance), 'signing-key');
}

const folderOf = (root: string, instance: string): string =>
  join(root, '.rollcall', ...(instance === DEFAULT_NAME ? [] : [instance]));

/**
 * Stores a copy of a new signing key. Renames an existing copy, which may be the only one, to `signing-key.1`, `.2` …
 *
 * @returns path of the copy
 */
export function keepSigningKey(root: string, secret: string, instance = DEFAULT_NAME): string {
  const path = signingKeyPath(root, instance);
  makePrivateDir(folderOf(root, instance));
  if (existsSync(path)) {
    let number = 1;
    while (existsSync(`${path}.${number}`)) number++;
    renameSync(path, `${path}.${number}`);
  }
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}

/** Returns the signing key of an instance from the environment or its local copy; undefined without either. */
export function knownSigningKey(root: string, instance: string): string | undefined {
  const named = process.env.ROLLCALL_SIGNING_KEY?.trim();
  if (named) return named;
  const path = signingKeyPath(root, instance);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

/** Moves a copy of an earlier version out of `.wrangler/`. */
export function moveSigningKey(root: string): void {
  const old = join(root, '.wrangler', 'rollcall', 'deploy', 'signing-key');
  if (!existsSync(old) || existsSync(signingKeyPath(root))) return;
  makePrivateDir(join(root, '.rollcall'));
  renameSync(old, signingKeyPath(root));
}
