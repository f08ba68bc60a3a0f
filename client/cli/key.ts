import { Command, InvalidArgumentError } from 'commander';
import { SCOPES, type Scope } from '../../src/jobs/app-services.ts';
import { findAccount } from '../account-settings.ts';
import { createKey, ensureAccount, listKeys, revokeKey } from '../accounts.ts';
import type { RunSql } from '../local/database.ts';
import { accountName, noAccount, seconds, signingKey, withDatabase } from './arguments.ts';
import { printLines } from './print.ts';
import { CliError, EXIT, note } from './run.ts';

interface Options {
  readonly account?: string;
  readonly scopes?: readonly Scope[];
  readonly credit?: number;
  readonly subscribe?: boolean;
  readonly expires?: number;
  readonly origins?: readonly string[];
  readonly revoke?: string;
  readonly list?: boolean;
  readonly json?: boolean;
  readonly remote?: boolean;
}

async function key(options: Options): Promise<void> {
  const isForNewKey = options.account !== undefined && !options.list;
  const actions = [options.revoke !== undefined, options.list, isForNewKey];
  if (actions.filter(Boolean).length !== 1) {
    throw new CliError(
      EXIT.usage,
      'Give --account NAME for a new key, or --revoke KEY_ID, or --list [--account NAME].',
    );
  }
  const { scopes, credit, subscribe, expires, origins } = options;
  if (!isForNewKey && [scopes, credit, subscribe, expires, origins].some((option) => option !== undefined)) {
    throw new CliError(
      EXIT.usage,
      '--scopes, --credit, --subscribe, --expires and --origins need a new key: --account NAME.',
    );
  }
  const work = async (run: RunSql): Promise<void> => {
    if (options.list) await list(run, options.account, options.json);
    else if (options.revoke !== undefined) await revoke(run, options.revoke);
    else await create(run, options, () => signingKey(options.remote));
  };
  await withDatabase(options.remote, work, { creates: isForNewKey });
}

async function create(run: RunSql, options: Options, signingKey: () => string): Promise<void> {
  const secret = signingKey();
  const now = Date.now();
  const account = { name: options.account ?? '', subscribe: options.subscribe, creditSeconds: options.credit };
  const accountId = await ensureAccount(run, account, now);
  const expiresAt = options.expires === undefined ? undefined : now + options.expires;
  const scopes = options.scopes ?? SCOPES;
  const { origins } = options;
  const { keyId, token } = await createKey(run, { accountId, scopes, expiresAt, origins, signingKey: secret }, now);
  if (options.json) return printLines([JSON.stringify({ keyId, key: token })]);
  note(`key id ${keyId}`);
  await printLines([token]);
}

async function revoke(run: RunSql, keyId: string): Promise<void> {
  if (!(await revokeKey(run, keyId, Date.now()))) throw new CliError(EXIT.failed, `There is no key ${keyId}.`);
  note(`key ${keyId} is revoked`);
}

async function list(run: RunSql, account: string | undefined, json = false): Promise<void> {
  const now = Date.now();
  if (account !== undefined && !(await findAccount(run, account))) throw noAccount(account);
  const rows = await listKeys(run, account);
  if (json) return printLines([JSON.stringify(rows)]);
  const lines = rows.map((row) => {
    const expired = row.expiresAt !== null && row.expiresAt <= now;
    const state = row.revokedAt !== null ? 'revoked' : expired ? 'expired' : 'active';
    const columns = [
      row.id,
      row.account,
      state,
      day(row.createdAt),
      day(row.expiresAt),
      row.scopes.replaceAll(' ', ','),
    ];
    return columns.join('  ');
  });
  await printLines(lines);
}

/** Formats a time. Shows one outside the range of `Date` as a number, so that the list shows every key. */
function day(time: number | null): string {
  if (time === null) return '-';
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString();
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
/** Start of the year 9999: later times could have five-digit years. */
const END_OF_TIME = Date.UTC(9999, 0);

function duration(text: string): number {
  const match = /^([1-9]\d{0,8})([smhdw])$/.exec(text);
  if (!match) throw new InvalidArgumentError('It must be a number with a unit: 45s, 30m, 12h, 30d or 4w.');
  const ms = Number(match[1]) * UNIT_MS[match[2]];
  if (Date.now() + ms >= END_OF_TIME) throw new InvalidArgumentError('It must end in the year 9998 or before.');
  return ms;
}

function scopeList(text: string): readonly Scope[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !SCOPES.some((scope) => scope === name));
  if (unknown.length > 0) {
    throw new InvalidArgumentError(`Unknown: ${unknown.join(', ')}. The scopes are: ${SCOPES.join(', ')}.`);
  }
  return SCOPES.filter((scope) => names.includes(scope));
}

/** More origins would make a key longer than the service accepts. */
const MAX_ORIGINS = 10;
const MAX_ORIGIN_CHARS = 253;

function originList(text: string): readonly string[] {
  const origins = text.split(',').map((origin) => origin.trim());
  const faulty = origins.filter((origin) => origin.length > MAX_ORIGIN_CHARS || !isOrigin(origin));
  if (faulty.length > 0) {
    throw new InvalidArgumentError(
      `Not an origin: ${faulty.join(', ')}. Examples: https://example.com, http://localhost:3000.`,
    );
  }
  if (origins.length > MAX_ORIGINS) throw new InvalidArgumentError(`At most ${MAX_ORIGINS} origins are allowed.`);
  return origins;
}

/** Whether this is an origin as browsers send it: no path, no default port, the host in lower case. */
const isOrigin = (text: string): boolean =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

export const command = new Command('keys')
  .description('Creates an API key, and the account if it is missing. Prints the key on stdout.')
  .option('--account <name>', 'account of the key', accountName)
  .option('--scopes <list>', `comma-separated, all by default: ${SCOPES.join(',')}`, scopeList)
  .option('--credit <seconds>', 'set the credit of the account, in seconds of audio', seconds)
  .option('--subscribe', 'give the account a subscription')
  .option('--expires <time>', 'lifetime of the key: 45s, 30m, 12h, 30d, 4w; no expiry by default', duration)
  .option(
    '--origins <list>',
    'comma-separated: pages from which browsers may connect to the live streams of the key; any by default',
    originList,
  )
  .option('--revoke <key-id>', 'revoke a key')
  .option('--json', 'print the new key, or the list, as JSON; times are milliseconds since 1970')
  .option('--list', 'show the keys: id, account, state, time of creation, expiry, scopes')
  .option('--remote', 'on the deployed service, through wrangler; needs ROLLCALL_SIGNING_KEY')
  .action(key);
