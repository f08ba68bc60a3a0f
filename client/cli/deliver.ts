import { accessSync, constants, existsSync, lstatSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Format } from '../format/output.ts';
import { OutputLost, print } from './print.ts';
import { CliError, EXIT, note } from './run.ts';
import { systemReason } from './system-error.ts';

/** Where a result goes; `name` is the file as the person called it. */
export type Destination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string; readonly name: string };

/**
 * Finds out what is wrong with `--output` before anything is started: a job may take an hour.
 *
 * @param baseDir folder that relative names are meant from
 * @param inputs files that the command reads, which the result must not replace
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
  // Names are looked for in the repository, too (`openRecording`).
  const paths = inputs.flatMap((input) => [resolve(baseDir, input), resolve(input)]);
  if (stats?.isFile() && paths.some((input) => isSame(path, input))) {
    throw new CliError(EXIT.usage, `--output: ${name} is read by this command, and would be overwritten.`);
  }
  return { kind: 'file', path, name };
}

/** Some names cannot be made, as those that are too long. */
function checkName(path: string, name: string): void {
  try {
    lstatSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR')
      return;
    throw new CliError(EXIT.usage, `--output: ${name} cannot be made (${systemReason(error) ?? String(error)}).`);
  }
}

function checkFolder(folder: string, name: string): void {
  if (!existsSync(folder)) {
    throw new CliError(EXIT.usage, `--output: ${name} cannot be made: there is no folder ${folder}.`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new CliError(EXIT.usage, `--output: ${name} cannot be made: ${folder} is not a folder.`);
  }
  checkWritable(folder, `--output: ${name} cannot be made: ${folder}`);
}

function checkWritable(path: string, what: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new CliError(EXIT.usage, `${what} may not be written (${systemReason(error)}).`);
  }
}

/** Exact numbers: those of files on Windows are beyond what a double can tell apart. */
function isSame(path: string, other: string): boolean {
  if (!existsSync(other)) return false;
  const [a, b] = [statSync(path, { bigint: true }), statSync(other, { bigint: true })];
  return a.dev === b.dev && a.ino === b.ino;
}

/**
 * How a result that was lost here can be had once more.
 *
 * @param address of the output of its job, where the service goes on
 */
export function fetchedAgain(address: string | undefined, format: Format): string | undefined {
  if (address === undefined) return undefined;
  return `The service has it for 24 hours: ${curlOf(`${address}?format=${format === 'text' ? 'txt' : format}`)}`;
}

/** The command that fetches an address of the service. */
export const curlOf = (address: string): string => `curl -H "Authorization: Bearer KEY" "${address}"`;

/**
 * Writes a result where it belongs; to the standard output where the file cannot be written after all.
 *
 * @param again what `fetchedAgain` says
 */
export async function deliver(text: string, to: Destination, again?: string): Promise<void> {
  if (to.kind === 'stdout') return printOr(text, again);
  try {
    writeFileSync(to.path, text);
  } catch (error) {
    note(`rollcall: ${to.name} could not be written: ${systemReason(error) ?? String(error)}. It is printed instead:`);
    await printOr(text, again);
    throw new CliError(
      EXIT.failed,
      `the result was printed, as ${to.name} could not be written.${again ? ` ${again}` : ''}`,
    );
  }
}

async function printOr(text: string, again: string | undefined): Promise<void> {
  try {
    await print(text);
  } catch (error) {
    if (!(error instanceof OutputLost) || error.kind === 'closed') throw error;
    throw new CliError(EXIT.failed, `the result could not be printed: ${error.message}.${again ? ` ${again}` : ''}`);
  }
}
