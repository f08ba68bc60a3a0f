import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepSigningKey, signingKeyPath } from './signing-key.ts';
import { mustWrangler } from './wrangler.ts';

/** Secrets of the Worker by name; null deletes one. */
export type Secrets = Readonly<Record<string, string | null>>;

export const newSigningKey = (): string => randomBytes(32).toString('base64');

/**
 * Arguments of `wrangler deploy` that upload secrets with the code, so that no code runs without them. The file is gone
 * afterwards.
 */
export async function withSecretsFile<T>(secrets: Secrets, deploy: (args: string[]) => Promise<T>): Promise<T> {
  if (Object.keys(secrets).length === 0) return deploy([]);
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-secrets-'));
  const path = join(folder, 'secrets.json');
  try {
    writeFileSync(path, JSON.stringify(secrets), { mode: 0o600 });
    return await deploy(['--secrets-file', path]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Changes secrets of a deployed Worker, all of them in one new version. */
export async function putSecrets(root: string, worker: string, secrets: Secrets): Promise<void> {
  await mustWrangler(root, ['secret', 'bulk', '--name', worker], JSON.stringify(secrets));
}

/** The signing key of an instance, from the environment or its copy here; undefined where neither has it. */
export function knownSigningKey(root: string, instance: string): string | undefined {
  const named = process.env.ROLLCALL_SIGNING_KEY?.trim();
  if (named) return named;
  try {
    return readFileSync(signingKeyPath(root, instance), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/**
 * Gives the instance a new signing key. What the one before signed is still accepted, until `endRotation`.
 *
 * @throws where the one before is not known
 */
export async function rotateSigningKey(root: string, instance: string, say: (line: string) => void): Promise<void> {
  const previous = knownSigningKey(root, instance);
  if (!previous) throw new Error('The present signing key is needed: set ROLLCALL_SIGNING_KEY to it.');
  const next = newSigningKey();
  const path = keepSigningKey(root, next, instance);
  await putSecrets(root, instance, { SIGNING_KEY: next, SIGNING_KEY_PREVIOUS: previous });
  say(`SIGNING_KEY is new; a copy is in ${path}. What the one before signed is still accepted.`);
  say('Now make new API keys (npm run key -- --remote), give receivers of webhooks their new secrets');
  say('(npm run account -- webhook-secret NAME --remote), and then: npm run deploy -- --end-rotation');
}

/** From now on nothing that the signing key before has signed is accepted. */
export async function endRotation(root: string, instance: string, say: (line: string) => void): Promise<void> {
  await putSecrets(root, instance, { SIGNING_KEY_PREVIOUS: null });
  say('What the signing key before has signed is no longer accepted.');
}
