import { randomUUID } from 'node:crypto';
import { accessSync, constants, createReadStream, existsSync, type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { isDataUrl } from '../../src/contract/data-url.ts';
import type { RollcallClient } from '../sdk/client.ts';
import { MAX_RECORDING_BYTES } from '../sdk/limits.ts';
import type { Outcome } from '../sdk/types.ts';
import { CliError, EXIT } from './run.ts';
import { systemReason } from './system-error.ts';

export type Recording =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'file'; readonly name: string; readonly path: string; readonly sizeBytes: number };

/**
 * Distinguishes addresses from files, and checks a file before a service is started.
 *
 * @param baseDir folder that relative names are resolved against
 * @param name of the recording in messages
 */
export function openRecording(fileOrUrl: string, baseDir: string, name = fileOrUrl): Recording {
  if (/^(https?|media):\/\//i.test(fileOrUrl) || isDataUrl(fileOrUrl)) return { kind: 'url', url: fileOrUrl };
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(fileOrUrl)) {
    throw new CliError(EXIT.usage, `${fileOrUrl}: only http, https, media and data addresses can be read.`);
  }
  if (fileOrUrl.trim() === '') throw new CliError(EXIT.usage, 'The name of the recording is blank.');
  const path = findFile(fileOrUrl, baseDir);
  const stats: Stats = statSync(path);
  if (stats.isDirectory()) throw new CliError(EXIT.usage, `${fileOrUrl} is a folder, not a recording.`);
  if (!stats.isFile()) {
    throw new CliError(EXIT.usage, `${fileOrUrl} is not a regular file. Save its content to one first.`);
  }
  try {
    accessSync(path, constants.R_OK);
  } catch {
    throw new CliError(EXIT.usage, `${fileOrUrl} cannot be read by this user.`);
  }
  if (stats.size === 0) throw new CliError(EXIT.failed, `${fileOrUrl} is empty.`);
  if (stats.size > MAX_RECORDING_BYTES) {
    const gibibytes = (stats.size / MAX_RECORDING_BYTES).toFixed(2);
    throw new CliError(EXIT.failed, `${fileOrUrl} has ${gibibytes} GiB; a recording may have 1 GiB at most.`);
  }
  return { kind: 'file', name, path, sizeBytes: stats.size };
}

function findFile(name: string, baseDir: string): string {
  const path = [resolve(baseDir, name), resolve(name)].find((candidate) => existsSync(candidate));
  if (path) return path;
  if (name === '-') {
    throw new CliError(EXIT.usage, 'Only diarize, transcribe, identify and voiceprint read the standard input (-).');
  }
  const hint = /^[a-z0-9-]+(\.[a-z0-9-]+)+\//i.test(name) ? ' An address begins with https:// or http://.' : '';
  throw new CliError(EXIT.usage, `${name}: there is no such file.${hint}`);
}

const CHUNK_BYTES = 256 * 1024;

/**
 * Uploads a file as media of the account, up to its size at the start, because a recording may still grow.
 *
 * @param onProgress receives the number of bytes sent so far
 * @returns the `media://` address
 * @throws CliError for a file that became shorter or cannot be read to its end
 */
export async function uploadRecording(
  client: RollcallClient,
  file: Recording & { kind: 'file' },
  onProgress: (sentBytes: number) => void,
  signal: AbortSignal,
): Promise<Outcome<string>> {
  let fault: string | undefined;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    const chunks = createReadStream(file.path, { highWaterMark: CHUNK_BYTES, end: file.sizeBytes - 1 }).iterator();
    let sentBytes = 0;
    try {
      for (;;) {
        // Does not include `yield`, which throws faults of the connection.
        const next = await chunks.next().catch((error: unknown) => {
          fault = `cannot be read: ${systemReason(error) ?? String(error)}`;
          throw error;
        });
        if (next.done) break;
        yield next.value as Uint8Array;
        sentBytes += (next.value as Uint8Array).length;
        onProgress(sentBytes);
      }
    } finally {
      await chunks.return?.();
    }
    if (sentBytes < file.sizeBytes) fault = 'became shorter while it was uploaded';
  };
  const body = () => Readable.toWeb(Readable.from(counted(), { objectMode: true })) as ReadableStream<Uint8Array>;
  const uploaded = await client.upload(`cli/${randomUUID()}`, body, file.sizeBytes, signal);
  // The connection reports faults of the file as faults of the network.
  if (fault !== undefined) throw new CliError(EXIT.failed, `${file.name} ${fault}.`);
  return uploaded;
}
