import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDir } from '../local/paths.ts';

/**
 * Where the only copy of the deployed service's signing key is: a secret cannot be read back. It is not in
 * `.wrangler/`, which one may delete to start afresh on this machine.
 */
export function signingKeyPath(root: string): string {
  return join(root, '.rollcall', 'signing-key');
}

/**
 * Keeps a copy of a new signing key. One that is there may be the only copy of another service's: it stays, as
 * `signing-key.1` and so on.
 *
 * @returns path of the copy
 */
export function keepSigningKey(root: string, secret: string): string {
  const path = signingKeyPath(root);
  makePrivateDir(join(root, '.rollcall'));
  if (existsSync(path)) {
    let number = 1;
    while (existsSync(`${path}.${number}`)) number++;
    renameSync(path, `${path}.${number}`);
  }
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}

/** The signing key of the deployed service, where the environment or this checkout has it. */
export function knownSigningKey(root: string): string | undefined {
  const named = process.env.ROLLCALL_SIGNING_KEY?.trim();
  if (named) return named;
  const path = signingKeyPath(root);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

/** Brings a copy that an earlier deployment left in `.wrangler/` to where it is kept now. */
export function moveSigningKey(root: string): void {
  const old = join(root, '.wrangler', 'rollcall', 'deploy', 'signing-key');
  if (!existsSync(old) || existsSync(signingKeyPath(root))) return;
  makePrivateDir(join(root, '.rollcall'));
  renameSync(old, signingKeyPath(root));
}
