import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { projectDir } from '../local/paths.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, note, printHelp, runCommand } from './run.ts';

/**
 * Runs the command `rollcall`. Loads only the given subcommand.
 *
 * @param words arguments of the command, the subcommand first
 */
export async function main(words: readonly string[]): Promise<void> {
  const [name, ...rest] = words;
  const subcommand = COMMANDS.find((candidate) => candidate.name === name);
  if (subcommand) return runCommand(await subcommand.load(), rest);
  if (name === '--version' || name === '-V') return printHelp(`${versionOf(projectDir)}\n`);
  const isHelp = name === undefined || name === 'help' || name === '--help' || name === '-h';
  const helpTopic = name === 'help' ? COMMANDS.find((candidate) => candidate.name === rest[0]) : undefined;
  if (helpTopic) return runCommand(await helpTopic.load(), ['--help']);
  if (isHelp) return printHelp(overview());
  note(`rollcall: there is no command ${name}. rollcall --help lists them.`);
  process.exitCode = EXIT.usage;
}

function overview(): string {
  const program = new Command('rollcall')
    .description('Who spoke when, and what they said. rollcall COMMAND --help describes a command.')
    .option('-V, --version', 'print the version')
    .usage('COMMAND [options]');
  for (const { name, description, hidden } of COMMANDS) program.command(name, { hidden }).description(description);
  return program.helpCommand(false).helpInformation();
}

function versionOf(root: string): string {
  return (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;
}
