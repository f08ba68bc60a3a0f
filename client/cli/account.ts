import { Command, Option } from 'commander';
import { parseUsageQuery, usageReport } from '../../src/contract/account.ts';
import {
  type AccountRow,
  type AccountSettings,
  accountUsage,
  changeAccount,
  createAccount,
  findAccount,
  listAccounts,
  rotateWebhookSecret,
  usageOfAll,
} from '../account-settings.ts';
import { webhookSecretOf } from '../accounts.ts';
import type { RunSql } from '../local/database.ts';
import {
  accountDetails,
  accountLine,
  USAGE_FORMATS,
  type UsageFormat,
  usageExport,
  usageFault,
  usageLines,
} from './account-report.ts';
import { accountName, noAccount, requestCount, seconds, signingKey, withDatabase } from './arguments.ts';
import { printLines } from './print.ts';
import { CliError, EXIT, note } from './run.ts';

interface Remote {
  readonly remote?: boolean;
}

const list = ({ remote }: Remote) =>
  withDatabase(remote, async (run) => {
    await printLines((await listAccounts(run)).map(accountLine));
  });

const show = (name: string, { remote }: Remote) =>
  withDatabase(remote, async (run) => {
    await printLines(accountDetails(await mustFind(run, name), Date.now()));
  });

const create = (name: string, { remote }: Remote) => {
  const work = async (run: RunSql): Promise<void> => {
    const id = await createAccount(run, name, Date.now());
    if (id === undefined) throw new CliError(EXIT.failed, `The account ${name} already exists.`);
    note(`account ${name} is created`);
    note(`give it credit with: npm run account -- set ${JSON.stringify(name)} --credit SECONDS`);
    await printLines([id]);
  };
  return withDatabase(remote, work, { creates: true });
};

interface SetOptions extends Remote {
  readonly subscribe?: boolean;
  readonly unsubscribe?: boolean;
  readonly credit?: number;
  readonly addCredit?: number;
  readonly postLimit?: number;
  readonly getLimit?: number;
  readonly defaultLimits?: boolean;
}

function settingsOf(options: SetOptions): AccountSettings {
  const { subscribe, unsubscribe, credit, addCredit, defaultLimits } = options;
  return {
    subscribed: subscribe ? true : unsubscribe ? false : undefined,
    creditSeconds: credit,
    addCreditSeconds: addCredit,
    postLimit: defaultLimits ? null : options.postLimit,
    getLimit: defaultLimits ? null : options.getLimit,
  };
}

async function set(name: string, options: SetOptions): Promise<void> {
  const settings = settingsOf(options);
  if (Object.values(settings).every((value) => value === undefined)) {
    throw new CliError(EXIT.usage, 'Give at least one setting; --help lists them.');
  }
  await withDatabase(options.remote, async (run) => {
    if (!(await changeAccount(run, name, settings))) throw noAccount(name);
    for (const line of accountDetails(await mustFind(run, name), Date.now())) note(line);
  });
}

async function rotate(name: string, { remote, force }: Remote & { readonly force?: boolean }): Promise<void> {
  await withDatabase(remote, async (run) => {
    // Read before the rotation, because the command cannot show the new secret without the key.
    const key = signingKey(remote);
    const rotation = await rotateWebhookSecret(run, name, Date.now(), force);
    if (rotation.kind === 'no_account') throw noAccount(name);
    if (rotation.kind === 'too_early') {
      const until = new Date(rotation.until).toISOString();
      throw new CliError(
        EXIT.failed,
        `The previous secret signs until ${until}; --force ends it now and rotates again.`,
      );
    }
    const until = new Date(rotation.previousUntil).toISOString();
    note(`the previous secret also signs, as X-Signature-Previous, until ${until}`);
    await printLines([String(await webhookSecretOf(run, name, key))]);
  });
}

async function webhookSecret(name: string, { remote }: Remote): Promise<void> {
  await withDatabase(remote, async (run) => {
    const secret = await webhookSecretOf(run, name, signingKey(remote));
    if (secret === undefined) throw noAccount(name);
    await printLines([secret]);
  });
}

interface UsageOptions extends Remote {
  readonly from?: string;
  readonly to?: string;
  readonly format: UsageFormat;
}

async function usage(name: string | undefined, { remote, format, ...query }: UsageOptions): Promise<void> {
  const range = parseUsageQuery(query, Date.now());
  if (!range.ok) {
    throw new CliError(EXIT.usage, range.errors.map(usageFault).join(' '));
  }
  await withDatabase(remote, async (run) => {
    if (name === undefined) return printLines(usageExport(await usageOfAll(run, range.value), format));
    const { id } = await mustFind(run, name);
    const rows = await accountUsage(run, id, range.value);
    if (format === 'text') return printLines(usageLines(usageReport(range.value, rows)));
    return printLines(
      usageExport(
        rows.map((row) => ({ account: name, ...row })),
        format,
      ),
    );
  });
}

async function mustFind(run: RunSql, name: string): Promise<AccountRow> {
  const account = await findAccount(run, name);
  if (!account) throw noAccount(name);
  return account;
}

export const command = new Command('account').description(
  'Accounts: credit, subscription, rate limits, webhook secrets, usage.',
);

/** Adds a subcommand for the local service, or with --remote for the deployed one. */
function subcommand(name: string, description: string): Command {
  return command
    .command(name)
    .description(description)
    .option('--remote', 'on the deployed service, through wrangler; secrets need ROLLCALL_SIGNING_KEY');
}
const ofAccount = (name: string, description: string): Command =>
  subcommand(name, description).argument('<name>', 'the account', accountName);

subcommand('list', 'show the accounts: name, credit, subscription, limits, time of creation').action(list);
ofAccount('show', 'show one account').action(show);
ofAccount('create', 'create an account and print its id').action(create);
ofAccount('set', 'change an account; takes effect at once, also on a running service')
  .addOption(new Option('--subscribe', 'give it a subscription').conflicts('unsubscribe'))
  .option('--unsubscribe', 'end its subscription')
  .addOption(
    new Option('--credit <seconds>', 'set its credit, in seconds of audio').argParser(seconds).conflicts('addCredit'),
  )
  .option('--add-credit <seconds>', 'add to its credit', seconds)
  .addOption(
    new Option('--post-limit <n>', 'requests a minute to each endpoint that changes something')
      .argParser(requestCount)
      .conflicts('defaultLimits'),
  )
  .addOption(
    new Option('--get-limit <n>', 'requests a minute to each endpoint that reads')
      .argParser(requestCount)
      .conflicts('defaultLimits'),
  )
  .option('--default-limits', 'restore the default limits of the service')
  .action(set);
ofAccount('rotate-webhook-secret', 'create a new webhook secret and print it; the previous one also signs for 24 hours')
  .option('--force', 'also within 24 hours of the last rotation')
  .action(rotate);
ofAccount('webhook-secret', 'print the secret that verifies its webhooks').action(webhookSecret);
subcommand('usage', 'show the billed usage of one or all accounts by UTC day and kind; the last 30 days by default')
  .argument('[name]', 'the account; all accounts by default', accountName)
  .addOption(
    new Option('--format <format>', 'one line for each account, day and kind').choices(USAGE_FORMATS).default('text'),
  )
  .option('--from <time>', 'date or datetime')
  .option('--to <time>', 'date (all of it) or datetime')
  .action(usage);
