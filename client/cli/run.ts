import { type Command, CommanderError } from 'commander';

/** Exit codes of every command. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a message on stderr; anything else that is thrown is a fault of ours and shows its stack. */
export class CliError extends Error {
  constructor(
    readonly exitCode: ExitCode,
    message: string,
  ) {
    super(message);
  }
}

/** A note for the person at the terminal: stdout is kept for results. */
export function note(message: string): void {
  process.stderr.write(`${message}\n`);
}

/** Parses the arguments and runs the command's action, turning its errors into exit codes. */
export async function runCommand(command: Command): Promise<void> {
  prepare(command);
  try {
    await command.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Commander would end the process by itself, with code 1 for wrong usage. */
function prepare(command: Command): void {
  command.exitOverride().showHelpAfterError('(--help shows what is possible)').allowExcessArguments(false);
  for (const child of command.commands) prepare(child);
}

function report(error: unknown): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof CliError) {
    note(`rollcall: ${error.message}`);
    return error.exitCode;
  }
  note(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failed;
}

/** Exit code of a command that a signal ended. */
export const INTERRUPTED = 130;

/**
 * Calls back at the first Ctrl-C, SIGTERM or SIGHUP; a second one ends the process at once. The handlers stay: wrangler's
 * libraries end the process themselves when they find no handler but their own.
 */
export function onInterrupt(callback: () => void): void {
  let count = 0;
  const interrupt = (): void => {
    if (++count > 1) process.exit(INTERRUPTED);
    callback();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
}
