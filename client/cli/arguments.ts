import { InvalidArgumentError } from 'commander';
import { signingKeyBytes } from '../../src/platform/signed-tokens.ts';
import type { RunSql } from '../local/database.ts';
import { defaultStateDir, projectDir } from '../local/paths.ts';
import { loadSecrets } from '../local/secrets.ts';
import { CliError, EXIT } from './run.ts';

/** More requests than the service can answer in a window. */
const MAX_RATE_LIMIT = 1_000_000;

/** 30,000 years; sums of credit up to it are exact to the millisecond. */
const MAX_SECONDS = 1e12;

/** Parses a number of seconds for commander. */
export function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0 || value > MAX_SECONDS) {
    throw new InvalidArgumentError(`It must be a number of seconds from 0 to ${MAX_SECONDS}.`);
  }
  return value;
}

/** Options whose names differ from the request's fields in more than dashes. */
const OPTIONS: Readonly<Record<string, string>> = {
  'matching.threshold': '--threshold',
  transcription: '--transcribe',
  'transcriptionConfig.model': '--transcription-model',
  'transcriptionConfig.language': '--language',
};
/** Fields whose option has the same name with dashes. */
const NAMED = [
  ...[
    'model',
    'numSpeakers',
    'minSpeakers',
    'maxSpeakers',
    'latency',
    'exclusive',
    'confidence',
    'turnLevelConfidence',
  ],
  ...['speechProbability', 'crosstalkProbability', 'speakerProbability'],
];

/** Returns the option that sets a field of a request; the field itself if there is none. */
export function optionOfField(field: string): string {
  if (!NAMED.includes(field)) return OPTIONS[field] ?? field;
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Parses a whole number from 1 to the largest finite one, for commander. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^[1-9]\d*$/.test(text) || !Number.isFinite(value)) {
    throw new InvalidArgumentError('It must be a whole number of at least 1.');
  }
  return value;
}

/** Parses a whole number from `min` to `max` for commander. */
export const wholeNumberIn =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };

/** Parses a number of requests for commander. */
export const requestCount = wholeNumberIn(1, MAX_RATE_LIMIT);

/** @throws CliError for a variable whose value is no web address */
export function checkAddress(variable: string, address: string): void {
  if (URL.canParse(address) && /^https?:\/\//i.test(address)) return;
  throw new CliError(EXIT.usage, `${variable} is not an address that begins with http:// or https://: ${address}`);
}

/** Parses the name of an account for commander. */
export function accountName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > 100) throw new InvalidArgumentError('It must have 1 to 100 characters.');
  return name;
}

export function noAccount(name: string): CliError {
  return new CliError(EXIT.failed, `There is no account ${name}.`);
}

/**
 * Runs `work` with the database of the local or the deployed service.
 *
 * @param options `creates` a missing local database
 */
export async function withDatabase(
  remote: boolean | undefined,
  work: (run: RunSql) => Promise<void>,
  options: { readonly creates?: boolean } = {},
): Promise<void> {
  const database = await openAccounts(remote, options);
  const run: RunSql = remote
    ? <Row>(...call: Parameters<RunSql>) => database.run<Row>(...call).catch(refuseRemote)
    : database.run;
  try {
    await work(run);
  } finally {
    await database.close();
  }
}

/** Reports wrangler's error without a stack trace, because the user can fix it. */
function refuseRemote(error: unknown): never {
  throw new CliError(EXIT.failed, error instanceof Error ? error.message : String(error));
}

/** Imports on demand, so that wrong usage is reported before wrangler's libraries load. */
async function openAccounts(
  remote: boolean | undefined,
  options: { readonly creates?: boolean },
): Promise<{ run: RunSql; close(): Promise<void> }> {
  if (remote) return (await import('../deploy/remote.ts')).openRemote(projectDir);
  const { openDatabase } = await import('../local/database.ts');
  return openDatabase(defaultStateDir(), projectDir, options);
}

/**
 * Returns the signing key of the local or the deployed service.
 *
 * @throws CliError for a missing or invalid key, before the command changes anything
 */
export function signingKey(remote: boolean | undefined): string {
  if (!remote) return loadSecrets(defaultStateDir()).signingKey;
  const key = process.env.ROLLCALL_SIGNING_KEY?.trim();
  if (!key) {
    throw new CliError(
      EXIT.usage,
      '--remote needs ROLLCALL_SIGNING_KEY, the secret that the service was deployed with.',
    );
  }
  try {
    signingKeyBytes(key);
  } catch {
    throw new CliError(EXIT.usage, 'ROLLCALL_SIGNING_KEY is not a signing key: base64 of at least 32 bytes.');
  }
  return key;
}
