import { systemReason } from './system-error.ts';

/** Thrown when stdout could not be written. */
export class OutputLost extends Error {
  constructor(
    /** `closed`: the reader, such as `head`, has ended. `failed`: for example the disk is full. */
    readonly kind: 'closed' | 'failed',
    message: string,
  ) {
    super(message);
  }
}

/**
 * Writes to stdout, and waits until the system has accepted the text.
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

export function printLines(lines: readonly string[]): Promise<void> {
  return print(lines.map((line) => `${line}\n`).join(''));
}

/**
 * Keeps the process running when a standard stream fails: `print` reports its own failures, and lost notes must not end
 * a job. Without listeners Node would exit with a stack trace.
 */
export function outliveFailedStreams(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
