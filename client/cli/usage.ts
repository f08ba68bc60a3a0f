import { Command } from 'commander';
import { usageLines } from './account-report.ts';
import { must, withService } from './job.ts';
import { print, printLines } from './print.ts';

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly json?: boolean;
}

async function usage({ from, to, json }: Options): Promise<void> {
  const nameOf = (field: string): string => `--${field}`;
  const report = await withService(async ({ client }) => must(await client.usage({ from, to }), nameOf));
  if (json) return print(`${JSON.stringify(report, null, 2)}\n`);
  await printLines(usageLines(report));
}

export const command = new Command('usage')
  .description('Shows the billed usage of the account by UTC day and kind; the last 30 days by default.')
  .option('--from <time>', 'date or datetime')
  .option('--to <time>', 'date (all of it) or datetime')
  .option('--json', 'print JSON')
  .action(usage);
