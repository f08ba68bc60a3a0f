import { accessSync, constants, existsSync, lstatSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Format } from '../format/output.ts';
import { OutputLost, print } from './print.ts';
import { CliError, EXIT, note } from './run.ts';
import { systemReason } from './system-error.ts';

/** Destination of a result; `name` is the file as given on the command line. */
export type Destination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string; readonly name: string };

/**
 * Checks `--output` before a job starts, because the job may take an hour.
 *
 * @param baseDir folder that relative names are resolved against
 * @param inputs files that the command reads; the result must not replace them
 */
export function openDestination(name: string | undefined, baseDir: string, inputs: readonly string[]): Destination {
  if (name === undefined || name === '-') return { kind: 'stdout' };
  if (name === '') throw new CliError(EXIT.usage, '--output needs the name of a file.');
  const path = resolve(baseDir, name);
  checkName(path, name);
  const stats = existsSync(path) ? statSync(path) : undefined;
  if (stats?.isDirectory() || /[\\/]$/.test(name)) {
    throw new CliError(EXIT.usage, `--output: ${name} is a folder; give the name of a file in it.`);
  }
  if (stats) checkWritable(path, `--output: ${name}`);
  else checkFolder(dirname(path), name);
  // `openRecording` also finds files relative to the repository.
  const paths = inputs.flatMap((input) => [resolve(baseDir, input), resolve(input)]);
  if (stats?.isFile() && paths.some((input) => isSame(path, input))) {
    throw new CliError(EXIT.usage, `--output: ${name} is read by this command, and would be overwritten.`);
  }
  return { kind: 'file', path, name };
}

/** Refuses names that the file system does not accept, for example too long ones. */
function checkName(path: string, name: string): void {
  try {
    lstatSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR')
      return;
    throw new CliError(EXIT.usage, `--output: ${name} cannot be created (${systemReason(error) ?? String(error)}).`);
  }
}

function checkFolder(folder: string, name: string): void {
  if (!existsSync(folder)) {
    throw new CliError(EXIT.usage, `--output: ${name} cannot be created: there is no folder ${folder}.`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new CliError(EXIT.usage, `--output: ${name} cannot be created: ${folder} is not a folder.`);
  }
  checkWritable(folder, `--output: ${name} cannot be created: ${folder}`);
}

function checkWritable(path: string, what: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new CliError(EXIT.usage, `${what} cannot be written (${systemReason(error)}).`);
  }
}

/** Compares bigints, because file numbers on Windows exceed the exact range of a double. */
function isSame(path: string, other: string): boolean {
  if (!existsSync(other)) return false;
  const [a, b] = [statSync(path, { bigint: true }), statSync(other, { bigint: true })];
  return a.dev === b.dev && a.ino === b.ino;
}

/**
 * Formats the advice for a result that could not be written.
 *
 * @param address of the job's output; undefined if the service ends with the command
 */
export function fetchAdvice(address: string | undefined, format: Format): string | undefined {
  if (address === undefined) return undefined;
  return `The service has it for 24 hours: ${curlOf(`${address}?format=${format === 'text' ? 'txt' : format}`)}`;
}

export const curlOf = (address: string): string => `curl -H "Authorization: Bearer KEY" "${address}"`;

/**
 * Writes a result to its destination, or to stdout if the file cannot be written.
 *
 * @param advice of `fetchAdvice`
 */
export async function deliver(text: string, to: Destination, advice?: string): Promise<void> {
  if (to.kind === 'stdout') return printOrThrow(text, advice);
  try {
    writeFileSync(to.path, text);
  } catch (error) {
    note(`rollcall: ${to.name} could not be written: ${systemReason(error) ?? String(error)}. It is printed instead:`);
    await printOrThrow(text, advice);
    throw new CliError(
      EXIT.failed,
      `the result was printed because ${to.name} could not be written.${advice ? ` ${advice}` : ''}`,
    );
  }
}

async function printOrThrow(text: string, advice: string | undefined): Promise<void> {
  try {
    await print(text);
  } catch (error) {
    if (!(error instanceof OutputLost) || error.kind === 'closed') throw error;
    throw new CliError(EXIT.failed, `the result could not be printed: ${error.message}.${advice ? ` ${advice}` : ''}`);
  }
}
