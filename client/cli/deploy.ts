import { Command } from 'commander';
import { deploy, rehearse } from '../deploy/deploy.ts';
import { projectDir } from '../local/paths.ts';
import { CliError, EXIT, runCommand } from './run.ts';

async function run({ dryRun }: { dryRun?: boolean }): Promise<void> {
  // A deployment goes on to its end also where nobody reads what it says.
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    await (dryRun ? rehearse : deploy)({ root: projectDir, say });
  } catch (error) {
    throw new CliError(EXIT.failed, error instanceof Error ? error.message : String(error));
  }
}

const command = new Command('deploy')
  .description('Creates what is missing on Cloudflare (D1, R2, queues, secret), migrates, uploads the models, deploys.')
  .option('--dry-run', 'bundle and check only, offline')
  .action(run);
await runCommand(command);
