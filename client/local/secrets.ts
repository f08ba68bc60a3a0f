import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LocalStateError, writePrivateFile } from './paths.ts';

export interface LocalSecrets {
  /** Base64 of 32 random bytes; signs API keys and media tickets. */
  readonly signingKey: string;
  /** The API key that `npm start` prints; absent before the first start. */
  readonly localKey?: string;
}

/** Reads the secrets of a state folder; creates them on the first call. */
export function loadSecrets(stateDir: string): LocalSecrets {
  const path = join(stateDir, 'secrets.json');
  if (existsSync(path)) return readSecrets(path);
  const secrets = { signingKey: randomBytes(32).toString('base64') };
  saveSecrets(stateDir, secrets);
  return secrets;
}

/** @throws LocalStateError for a damaged file: new secrets would silently make every key invalid */
function readSecrets(path: string): LocalSecrets {
  try {
    const secrets = JSON.parse(readFileSync(path, 'utf8')) as Partial<LocalSecrets> | null;
    if (typeof secrets?.signingKey === 'string') return secrets as LocalSecrets;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new LocalStateError(
    `${path} is damaged. Replace it with a good copy, or remove it; without it all earlier keys are invalid.`,
  );
}

export function saveSecrets(stateDir: string, secrets: LocalSecrets): void {
  writePrivateFile(join(stateDir, 'secrets.json'), `${JSON.stringify(secrets, null, 2)}\n`);
}
