import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDir } from '../local/paths.ts';
import { DEFAULT_NAME } from './naming.ts';

/**
 * Where the only copy of the deployed service's signing key is: a secret cannot be read back. It is not in
 * `.wrangler/`, which one may delete to start afresh on this machine.
 */
export function signingKeyPath(root: string, instance = DEFAULT_NAME): string {
  return join(folderOf(root, instance), 'signing-key');
}

const folderOf = (root: string, instance: string): string =>
  join(root, '.rollcall', ...(instance === DEFAULT_NAME ? [] : [instance]));

/**
 * Keeps a copy of a new signing key. One that is there may be the only copy of another service's: it stays, as
 * `signing-key.1` and so on.
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

/** The signing key of an instance, from the environment or its copy here; undefined where neither has it. */
export function knownSigningKey(root: string, instance: string): string | undefined {
  const named = process.env.ROLLCALL_SIGNING_KEY?.trim();
  if (named) return named;
  const path = signingKeyPath(root, instance);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

/** Brings a copy that an earlier deployment left in `.wrangler/` to where it is kept now. */
export function moveSigningKey(root: string): void {
  const old = join(root, '.wrangler', 'rollcall', 'deploy', 'signing-key');
  if (!existsSync(old) || existsSync(signingKeyPath(root))) return;
  makePrivateDir(join(root, '.rollcall'));
  renameSync(old, signingKeyPath(root));
}
