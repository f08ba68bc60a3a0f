import { randomBytes } from 'node:crypto';
import { JOBS, type ServiceWorker, WORKERS } from '../workers.ts';
import { engineVariables, isKey } from './config.ts';
import { keepSigningKey, knownSigningKey } from './signing-key.ts';
import { mustWrangler, wrangler } from './wrangler.ts';

/** Values by name. */
export type Secrets = Readonly<Record<string, string>>;

/**
 * The secrets that Workers get with their next deployment: the signing key where they have none, and the keys of
 * transcription engines.
 *
 * @throws where some Workers have a signing key that this machine does not know: a secret cannot be read back
 */
export async function missingSecrets(
  root: string,
  configOf: (worker: ServiceWorker) => string,
  say: (line: string) => void,
): Promise<ReadonlyMap<ServiceWorker, Secrets>> {
  const signers = WORKERS.filter(({ signs }) => signs);
  const without: ServiceWorker[] = [];
  for (const worker of signers) if (!(await hasSigningKey(root, configOf(worker)))) without.push(worker);
  let signingKey: string | undefined;
  if (without.length === signers.length) {
    signingKey = randomBytes(32).toString('base64');
    const path = keepSigningKey(root, signingKey);
    say(`SIGNING_KEY made; a copy is in ${path}. Keep it safe: every API key is signed with it.`);
  } else if (without.length > 0) {
    signingKey = knownSigningKey(root);
    if (!signingKey) {
      const names = without.map(({ name }) => name).join(' and ');
      throw new Error(`${names} needs the SIGNING_KEY of the deployed service. Set ROLLCALL_SIGNING_KEY to it.`);
    }
  }
  const engineKeys = Object.fromEntries(engineVariables().filter(([name]) => isKey(name)));
  return new Map(
    WORKERS.map((worker) => [
      worker,
      {
        ...(without.includes(worker) && signingKey && { SIGNING_KEY: signingKey }),
        ...(worker === JOBS && engineKeys),
      },
    ]),
  );
}

/** False for a Worker that is not deployed yet. */
export async function hasSigningKey(root: string, config: string): Promise<boolean> {
  const args = ['secret', 'list', '--format', 'json', '--config', config];
  const { code, stdout, stderr } = await wrangler(root, args);
  if (code !== 0 && /Worker "[^"]+" not found/.test(stderr + stdout)) return false;
  const listed = code === 0 ? stdout : await mustWrangler(root, args);
  const secrets = JSON.parse(listed.slice(listed.indexOf('['))) as { name: string }[];
  return secrets.some(({ name }) => name === 'SIGNING_KEY');
}
