import { createWriteStream, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { glob } from 'tinyglobby';
import { MAX_RECORDING_BYTES } from '../sdk/limits.ts';
import { CliError, EXIT, Interrupted } from './run.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A recording: its name on the command line, and its path or address. */
export interface Input {
  readonly name: string;
  readonly path: string;
}

/**
 * Expands patterns that the shell did not expand (quoted, or on Windows), and reads stdin for `-`.
 *
 * @param baseDir folder that relative names are resolved against
 */
export async function findInputs(names: readonly string[], baseDir: string): Promise<Input[]> {
  if (names.filter((name) => name === '-').length > 1) {
    throw new CliError(EXIT.usage, 'The standard input (-) can be given only once.');
  }
  const found: Input[] = [];
  for (const name of names) {
    if (name === '-') found.push({ name: 'stdin', path: await spoolStdin() });
    else if (isPattern(name, baseDir)) found.push(...(await expand(name, baseDir)));
    else found.push({ name, path: name });
  }
  return found;
}

function isPattern(name: string, baseDir: string): boolean {
  return /[*?[{]/.test(name) && !/^[a-z][a-z0-9+.-]*:/i.test(name) && !existsSync(resolve(baseDir, name));
}

async function expand(pattern: string, baseDir: string): Promise<Input[]> {
  const paths = await glob(pattern.replaceAll('\\', '/'), { cwd: baseDir, absolute: true, expandDirectories: false });
  if (paths.length === 0) throw new CliError(EXIT.usage, `${pattern}: no file matches.`);
  return paths.sort().map((path) => ({ name: relative(baseDir, path), path }));
}

/** Copies stdin to a file, because an upload must state its length first. */
async function spoolStdin(): Promise<string> {
  if (process.stdin.isTTY) throw new CliError(EXIT.usage, 'The standard input is a terminal, not a recording.');
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-stdin-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'recording');
  let bytes = 0;
  const limited = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > MAX_RECORDING_BYTES) throw new CliError(EXIT.failed, 'A recording may have 1 GiB at most.');
      yield chunk;
    }
  };
  // Without these handlers a signal would end the process without its `exit` event.
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of SIGNALS) process.once(signal, onSignal);
  try {
    await pipeline(process.stdin, limited, createWriteStream(path, { mode: 0o600 }), { signal: stop.signal });
  } catch (error) {
    throw stop.signal.aborted ? new Interrupted() : error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
  if (statSync(path).size === 0) throw new CliError(EXIT.failed, 'The standard input is empty.');
  return path;
}
