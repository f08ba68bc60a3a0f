import { systemReason } from './system-error.ts';

/** What was printed did not get through. */
export class OutputLost extends Error {
  constructor(
    /** `closed`: whoever read it has ended, as `head` does; `failed`: the system refused it, as a full disk does. */
    readonly kind: 'closed' | 'failed',
    message: string,
  ) {
    super(message);
  }
}

/**
 * Writes results to the standard output, and waits until the system has them.
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

/** `print` for whole lines. */
export function printLines(lines: readonly string[]): Promise<void> {
  return print(lines.map((line) => `${line}\n`).join(''));
}

/**
 * Lets the process outlive standard streams that fail: `print` tells of its own failures, and notes that nobody reads any more
 * are no reason to give up a job. Without listeners Node ends with a stack trace.
 */
export function outliveFailedStreams(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
