import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { LocalStateError } from '../local/paths.ts';
import { optionsKeptByNpm, scriptOf } from './npm-options.ts';
import { OutputLost, outliveFailedStreams, print } from './print.ts';
import { describeSystemError } from './system-error.ts';

/** Exit codes of every command. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a message on stderr. Other errors are bugs, and the command prints their stack. */
export class CliError extends Error {
  constructor(
    readonly exitCode: ExitCode,
    message: string,
  ) {
    super(message);
  }
}

/** Ends a command after Ctrl-C, without a message. */
export class Interrupted extends Error {}

/** Prints a note on stderr; stdout is for results. */
export function note(message: string): void {
  process.stderr.write(`${message}\n`);
}

/**
 * Parses the arguments and runs the command's action; turns errors into exit codes.
 *
 * @param words arguments after the name of the command
 */
export async function runCommand(command: Command, words: readonly string[] = process.argv.slice(2)): Promise<void> {
  outliveFailedStreams();
  const help: string[] = [];
  const kept = optionsKeptByNpm(command, words, process.env);
  const script = scriptOf(command.name());
  const call = process.env.npm_lifecycle_event === script ? `npm run ${script} --` : `rollcall ${command.name()}`;
  command.name(call); // for the help
  prepare(command, (text) => help.push(text));
  try {
    if (kept.length > 0) {
      throw new CliError(EXIT.usage, `npm took ${kept.join(' ')} for itself. Write -- before the options: ${call} …`);
    }
    await command.parseAsync(words, { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
  // Commander does not wait for its output.
  if (help.length > 0) await printHelp(help.join(''));
}

/** Prints text; sets the exit code instead of throwing. */
export async function printHelp(text: string): Promise<void> {
  outliveFailedStreams();
  await print(text).catch((error: unknown) => (process.exitCode = report(error)));
}

/** Stops commander from ending the process itself with code 1 for wrong usage. */
function prepare(command: Command, writeOut: (text: string) => void): void {
  command.exitOverride().showHelpAfterError('(--help shows the usage)').allowExcessArguments(false);
  command.configureOutput({ writeOut });
  for (const child of command.commands) prepare(child, writeOut);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.code === 'commander.excessArguments') {
      note(
        '(A name with spaces needs quotes. After `npm run`, options need -- before them, because npm has options too.)',
      );
    }
    const option = /^error: unknown option '(.+)'/.exec(error.message)?.[1];
    if (option !== undefined && isFile(option)) note(`(For the file of that name, write ./${option})`);
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
  if (error instanceof CliError) {
    note(`rollcall: ${error.message}`);
    return error.exitCode;
  }
  if (error instanceof Interrupted) return INTERRUPTED;
  if (error instanceof OutputLost) {
    if (error.kind === 'closed') return PIPE_CLOSED;
    note(`rollcall: the standard output could not be written: ${error.message}.`);
    return EXIT.failed;
  }
  if (error instanceof LocalStateError) {
    note(`rollcall: ${error.message}`);
    return EXIT.failed;
  }
  const system = describeSystemError(error);
  note(system ? `rollcall: ${system}.` : error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failed;
}

/** Whether a file of this name is in the folder of the caller or in the current folder. */
function isFile(name: string): boolean {
  return [process.env.INIT_CWD ?? '.', '.'].some((folder) => existsSync(resolve(folder, name)));
}

/** Exit code of a command that was ended by a signal. */
export const INTERRUPTED = 130;
/** Exit code that shells use for a program whose reader has ended: 128 + SIGPIPE. */
const PIPE_CLOSED = 141;
