import { InvalidArgumentError } from 'commander';
import { signingKeyBytes } from '../../src/platform/signed-tokens.ts';
import type { RunSql } from '../local/database.ts';
import { defaultStateDir, projectDir } from '../local/paths.ts';
import { loadSecrets } from '../local/secrets.ts';
import { CliError, EXIT } from './run.ts';

/** Largest limit that can be given; more than an account's counter can be asked in a window. */
const MAX_RATE_LIMIT = 1_000_000;

/** Some thirty thousand years; sums of credit stay exact to the millisecond. */
const MAX_SECONDS = 1e12;

/** A number of seconds, for commander. */
export function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0 || value > MAX_SECONDS) {
    throw new InvalidArgumentError(`It must be a number of seconds from 0 to ${MAX_SECONDS}.`);
  }
  return value;
}

/** Fields of requests that are options of the commands under another name than their own with dashes. */
const OPTIONS: Readonly<Record<string, string>> = {
  'matching.threshold': '--threshold',
  transcription: '--transcribe',
  'transcriptionConfig.model': '--transcription-model',
  'transcriptionConfig.language': '--language',
};
/** Those that have their own name. */
const NAMED =
  /^(model|(num|min|max)Speakers|latency|exclusive|confidence|turnLevelConfidence|(speech|crosstalk|speaker)Probability)$/;

/** Names the option that became a field of a request. */
export function optionOfField(field: string): string {
  if (!NAMED.test(field)) return OPTIONS[field] ?? field;
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** A whole number of at least 1, as large as a request can say it, for commander. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^[1-9]\d*$/.test(text) || !Number.isFinite(value)) {
    throw new InvalidArgumentError('It must be a whole number of at least 1.');
  }
  return value;
}

/** A whole number from `min` to `max`, for commander. */
export const wholeNumberIn =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };

/** A number of requests, for commander. */
export const requestCount = wholeNumberIn(1, MAX_RATE_LIMIT);

/** @throws CliError when the variable of this name holds no web address */
export function checkAddress(variable: string, address: string): void {
  if (URL.canParse(address) && /^https?:\/\//i.test(address)) return;
  throw new CliError(EXIT.usage, `${variable} is not an address with http:// or https:// in front: ${address}`);
}

/** The name of an account, for commander. */
export function accountName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > 100) throw new InvalidArgumentError('It must have 1 to 100 characters.');
  return name;
}

/** For a name that no account has. */
export function noAccount(name: string): CliError {
  return new CliError(EXIT.failed, `There is no account ${name}.`);
}

/**
 * Lets `work` use the database of the local or of the deployed service.
 *
 * @param options `makes`: the local one is made where there is none
 */
export async function withDatabase(
  remote: boolean | undefined,
  work: (run: RunSql) => Promise<void>,
  options: { readonly makes?: boolean } = {},
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

/** What wrangler complains of is for the person at the terminal to mend. */
function refuseRemote(error: unknown): never {
  throw new CliError(EXIT.failed, error instanceof Error ? error.message : String(error));
}

/** Loads what it needs only now: wrong usage is told without waiting for wrangler's libraries. */
async function openAccounts(
  remote: boolean | undefined,
  options: { readonly makes?: boolean },
): Promise<{ run: RunSql; close(): Promise<void> }> {
  if (remote) return (await import('../deploy/remote.ts')).openRemote(projectDir);
  const { openDatabase } = await import('../local/database.ts');
  return openDatabase(defaultStateDir(), projectDir, options);
}

/**
 * The signing key of the local or of the deployed service.
 *
 * @throws CliError for one that nothing can be signed with: nothing may be changed before that is known
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
