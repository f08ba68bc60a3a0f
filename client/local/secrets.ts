import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LocalStateError } from './paths.ts';

export interface LocalSecrets {
  /** Base64 of 32 random bytes: signs API keys and media tickets. */
  readonly signingKey: string;
  /** The API key that `npm start` prints; absent before the first start. */
  readonly localKey?: string;
}

/** Reads the secrets of a state folder; makes them the first time. */
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
    `${path} is damaged. Replace it by a good copy, or remove it: then all earlier keys become invalid.`,
  );
}

/** Writes atomically, so that a kill leaves the old file or the new one; only the owner can read it. */
export function saveSecrets(stateDir: string, secrets: LocalSecrets): void {
  const path = join(stateDir, 'secrets.json');
  writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.${process.pid}`, path);
}
