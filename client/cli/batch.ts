import { mkdirSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import type { ShownOutput } from '../format/output.ts';
import { type Format, fileIdOf, formatOutput } from '../format/output.ts';
import { drawTerminalTimeline, palette } from '../format/terminal.ts';
import { type Destination, deliver, fetchAdvice, openDestination } from './deliver.ts';
import { findInputs } from './inputs.ts';
import { type JobOutput, type Session, withService } from './job.ts';
import { openRecording, type Recording } from './recording.ts';
import { CliError, EXIT, note } from './run.ts';

/** A recording of a command, and the destination of its result. */
export interface BatchItem {
  /** Name given on the command line. */
  readonly name: string;
  readonly recording: Recording;
  readonly destination: Destination;
}

export interface BatchOptions {
  /** Folder that relative names are resolved against. */
  readonly baseDir: string;
  readonly format: Format;
  readonly output?: string;
  /** Other files that the command reads; no result may overwrite them. */
  readonly reads: readonly string[];
}

/**
 * Checks recordings and destinations before a service is started. For several recordings `--output` names a folder,
 * which is created if it is missing.
 *
 * @param names files, addresses, patterns, or `-` for stdin
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
  const reserved = [...inputs.map(({ path }) => path), ...reads];
  const extension = format === 'text' ? 'txt' : format;
  const fileNames = resultNames(inputs.map(({ name }) => name));
  return recordings.map(({ name, recording }, index) => {
    const file = join(output, `${fileNames[index]}.${extension}`);
    return { name, recording, destination: openDestination(file, baseDir, reserved) };
  });
}

/**
 * Returns distinct file names for the results of several recordings, without an extension: the name of the recording,
 * with its extension or a number where several have the same name.
 */
export function resultNames(recordings: readonly string[]): string[] {
  const files = recordings.map(
    (name) => basename(/^https?:/i.test(name) ? new URL(name).pathname : name) || 'recording',
  );
  const stem = (file: string) => basename(file, extname(file));
  const taken = new Set<string>();
  return files.map((file) => {
    const isUnique = files.filter((other) => stem(other) === stem(file)).length === 1;
    const preferred = isUnique ? stem(file) : file;
    let name = preferred;
    for (let number = 2; taken.has(name); number++) name = `${preferred}-${number}`;
    taken.add(name);
    return name;
  });
}

/**
 * Runs a job for each recording and writes the results. A recording that fails does not stop the others.
 *
 * @throws CliError when a recording failed
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
        const printsTimeline = destination.kind === 'stdout' && process.stdout.isTTY && format === 'text';
        const text = printsTimeline ? timelineOf(output) : formatOutput(output, format, fileIdOf(name));
        await deliver(text, destination, fetchAdvice(address, format));
        if (items.length > 1 && destination.kind === 'file') note(`${name}: ${destination.name}`);
      } catch (error) {
        const isFatal = items.length === 1 || session.signal.aborted || !(error instanceof CliError);
        if (isFatal || error.exitCode === EXIT.unreachable) throw error;
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
