import type { Command } from 'commander';

/** Environment variables, including those of `npm run`. */
interface Environment {
  readonly [name: string]: string | undefined;
}

/** npm scripts whose name differs from that of the command, by command. */
const SCRIPTS: Readonly<Record<string, string>> = { serve: 'start', keys: 'key' };

/** The npm script that runs a subcommand of `rollcall`. */
export const scriptOf = (command: string): string => SCRIPTS[command] ?? command;

/**
 * Finds options that `npm run` took as its own because `--` was missing. Without this check, `npm run deploy --dry-run`
 * would deploy.
 *
 * @param given arguments that reached the command
 */
export function optionsKeptByNpm(command: Command, given: readonly string[], env: Environment): string[] {
  if (env.npm_lifecycle_event !== scriptOf(command.name())) return [];
  const flags = [command, ...command.commands].flatMap(({ options }) => options.map(({ long }) => long ?? ''));
  return [...new Set(flags)].filter((flag) => {
    const isGiven = given.some((word) => word === flag || word.startsWith(`${flag}=`));
    return !isGiven && !MAYBE_OF_NPM.has(flag) && env[variableOf(flag)] !== undefined;
  });
}

/** Options that npm has too and that may be set in its configuration. */
const MAYBE_OF_NPM = new Set(['--force', '--yes']);

function variableOf(flag: string): string {
  return `npm_config_${flag.replace(/^--(no-)?/, '').replaceAll('-', '_')}`;
}
