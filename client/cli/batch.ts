import { mkdirSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import type { ShownOutput } from '../format/output.ts';
import { type Format, fileIdOf, formatOutput } from '../format/output.ts';
import { drawTerminalTimeline, palette } from '../format/terminal.ts';
import { type Destination, deliver, fetchedAgain, openDestination } from './deliver.ts';
import { findInputs } from './inputs.ts';
import { type JobOutput, type Session, withService } from './job.ts';
import { openRecording, type Recording } from './recording.ts';
import { CliError, EXIT, note } from './run.ts';

/** One of the recordings of a command, and where its result goes. */
export interface BatchItem {
  /** As the person called it. */
  readonly name: string;
  readonly recording: Recording;
  readonly destination: Destination;
}

export interface BatchOptions {
  /** Folder that relative names are meant from. */
  readonly baseDir: string;
  readonly format: Format;
  readonly output?: string;
  /** Other files that the command reads, which no result must replace. */
  readonly reads: readonly string[];
}

/**
 * Finds out what is wrong with recordings and destinations before anything is started. Several recordings need
 * `--output` to name a folder, which is made where it is missing.
 *
 * @param names files, addresses, patterns, or `-` for the standard input
 */
export async function openBatch(names: readonly string[], options: BatchOptions): Promise<BatchItem[]> {
  const { baseDir, format, output, reads } = options;
  const inputs = await findInputs(names, baseDir);
  if (inputs.length === 1) {
    const [{ name, path }] = inputs;
    const recording = openRecording(path, baseDir, name);
    return [{ name, recording, destination: openDestination(output, baseDir, [path, ...reads]) }];
  }
  if (output === undefined || output === '-') {
    throw new CliError(EXIT.usage, 'Several recordings need --output FOLDER: each result is a file there.');
  }
  const recordings = inputs.map(({ name, path }) => ({ name, recording: openRecording(path, baseDir, name) }));
  mkdirSync(resolve(baseDir, output), { recursive: true });
  const read = [...inputs.map(({ path }) => path), ...reads];
  const extension = format === 'text' ? 'txt' : format;
  const stems = inputs.map(({ name }) => basename(new URL(name, 'file:///').pathname));
  return recordings.map(({ name, recording }, index) => {
    const short = basename(stems[index], extname(stems[index]));
    const isAlone = stems.filter((other) => basename(other, extname(other)) === short).length === 1;
    const file = join(output, `${decodeURIComponent(isAlone ? short : stems[index])}.${extension}`);
    return { name, recording, destination: openDestination(file, baseDir, read) };
  });
}

/**
 * Runs a job for each recording and writes the results. Of several, the others go on where one fails.
 *
 * @throws CliError where one failed
 */
export async function runBatch<T extends ShownOutput>(
  items: readonly BatchItem[],
  format: Format,
  work: (session: Session, recording: Recording) => Promise<JobOutput<T>>,
  onResult?: (output: T) => void,
): Promise<void> {
  let failed = 0;
  await withService(async (session) => {
    for (const { name, recording, destination } of items) {
      try {
        const { output, address } = await work(session, recording);
        session.progress.end();
        onResult?.(output);
        const isAtTerminal = destination.kind === 'stdout' && process.stdout.isTTY && format === 'text';
        const text = isAtTerminal ? timelineOf(output) : formatOutput(output, format, fileIdOf(name));
        await deliver(text, destination, fetchedAgain(address, format));
        if (items.length > 1 && destination.kind === 'file') note(`${name}: ${destination.name}`);
      } catch (error) {
        const ends = items.length === 1 || session.signal.aborted || !(error instanceof CliError);
        if (ends || error.exitCode === EXIT.unreachable) throw error;
        note(`rollcall: ${error.message}`);
        failed++;
      }
    }
  });
  if (failed > 0) throw new CliError(EXIT.failed, `${failed} of ${items.length} recordings failed.`);
}

function timelineOf(output: ShownOutput): string {
  const lines = formatOutput(output, 'text', '').trimEnd().split('\n');
  return drawTerminalTimeline(output, lines, {
    columns: process.stdout.columns,
    paint: palette(process.env.NO_COLOR ? 0 : process.stdout.getColorDepth()),
  });
}
