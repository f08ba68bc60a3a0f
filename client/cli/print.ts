import { systemReason } from './system-error.ts';

/** The standard output could not be written. */
export class OutputLost extends Error {
  constructor(
    /** `closed` by its reader, such as `head`; or `failed`, as on a full disk. */
    readonly kind: 'closed' | 'failed',
    message: string,
  ) {
    super(message);
  }
}

/**
 * Writes to the standard output, and waits until the system has taken the text.
 *
 * @throws OutputLost
 */
export function print(text: string): Promise<void> {
  return new Promise((done, refuse) => {
    process.stdout.write(text, (error) => (error ? refuse(lost(error)) : done()));
  });
}

function lost(error: Error): OutputLost {
  const isClosed = (error as NodeJS.ErrnoException).code === 'EPIPE';
  return new OutputLost(isClosed ? 'closed' : 'failed', systemReason(error) ?? error.message);
}

/** Prints lines. */
export function printLines(lines: readonly string[]): Promise<void> {
  return print(lines.map((line) => `${line}\n`).join(''));
}

/**
 * Keeps the process running when a standard stream fails: `print` reports its own failures, and lost notes must not end
 * a job. Without listeners Node would end with a stack trace.
 */
export function outliveFailedStreams(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
