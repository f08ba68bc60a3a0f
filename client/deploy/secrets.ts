import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOBS, type ServiceWorker, WORKERS } from '../workers.ts';
import { engineVariables, isKey } from './config.ts';
import { nameIn } from './naming.ts';
import { keepSigningKey, knownSigningKey } from './signing-key.ts';
import { hasSigningKey, type Survey } from './survey.ts';
import { mustWrangler } from './wrangler.ts';

/** Secrets of a Worker by name; null deletes one. */
export type Secrets = Readonly<Record<string, string | null>>;

/**
 * Returns the secrets for the next deployment of each Worker: the signing key if it is missing, and the keys of
 * transcription engines.
 *
 * @throws if some Workers have a signing key of which this machine has no copy: secrets cannot be read back
 */
export function missingSecrets(
  found: Survey,
  root: string,
  instance: string,
  say: (line: string) => void,
): ReadonlyMap<ServiceWorker, Secrets> {
  const missing = WORKERS.filter((worker) => !hasSigningKey(found, worker));
  const signingKey =
    missing.length === WORKERS.length ? makeSigningKey(root, instance, say) : knownSigningKey(root, instance);
  if (missing.length > 0 && !signingKey) {
    const names = missing.map(({ name }) => nameIn(instance, name)).join(', ');
    throw new Error(`The SIGNING_KEY of the service is needed for ${names}: set ROLLCALL_SIGNING_KEY to it.`);
  }
  const engineKeys = Object.fromEntries(engineVariables().filter(([name]) => isKey(name)));
  return new Map(
    WORKERS.map((worker) => [
      worker,
      {
        ...(missing.includes(worker) && signingKey && { SIGNING_KEY: signingKey }),
        ...(worker === JOBS && engineKeys),
      },
    ]),
  );
}

function makeSigningKey(root: string, instance: string, say: (line: string) => void): string {
  const secret = newSigningKey();
  const path = keepSigningKey(root, secret, instance);
  say(`SIGNING_KEY created; a copy is in ${path}. Keep it safe: every API key is signed with it.`);
  return secret;
}

const newSigningKey = (): string => randomBytes(32).toString('base64');

/**
 * Calls `deploy` with the arguments of `wrangler deploy` that upload secrets with the code, so that no code runs
 * without them. Deletes the file of the secrets at the end.
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

/** Changes secrets of deployed Workers. */
export async function putSecrets(
  root: string,
  instance: string,
  workers: readonly ServiceWorker[],
  secrets: Secrets,
): Promise<void> {
  for (const { name } of workers) {
    await mustWrangler(root, ['secret', 'bulk', '--name', nameIn(instance, name)], JSON.stringify(secrets));
  }
}

/**
 * Gives the instance a new signing key. Signatures of the previous key are accepted until `endRotation`.
 *
 * @throws if this machine has no copy of the previous key
 */
export async function rotateSigningKey(root: string, instance: string, say: (line: string) => void): Promise<void> {
  const previous = knownSigningKey(root, instance);
  if (!previous) throw new Error('The current signing key is needed: set ROLLCALL_SIGNING_KEY to it.');
  const next = newSigningKey();
  const path = keepSigningKey(root, next, instance);
  try {
    // The Worker that answers HTTP comes first, because it verifies the tokens that the others sign.
    const workers = WORKERS.toReversed();
    await putSecrets(root, instance, workers, { SIGNING_KEY: next, SIGNING_KEY_PREVIOUS: previous });
  } catch (error) {
    // A second attempt must not use the new key as the previous one, because no API key is signed with it.
    say('Not every Worker has the new key. Before you try again, set ROLLCALL_SIGNING_KEY to the previous key:');
    say(`it is in the file with the highest number next to ${path}, not in that file itself.`);
    throw error;
  }
  say(`SIGNING_KEY is new; a copy is in ${path}. Signatures of the previous key are still accepted.`);
  say('Now create new API keys (npm run key -- --remote), give receivers of webhooks their new secrets');
  say('(npm run account -- webhook-secret NAME --remote), and then: npm run deploy -- --end-rotation');
}

/** Ends a rotation: signatures of the previous signing key are refused. */
export async function endRotation(root: string, instance: string, say: (line: string) => void): Promise<void> {
  await putSecrets(root, instance, WORKERS, { SIGNING_KEY_PREVIOUS: null });
  say('Signatures of the previous signing key are no longer accepted.');
}
