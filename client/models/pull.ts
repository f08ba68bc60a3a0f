import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { FileOrigin, ModelFile } from '../../src/platform/onnx/manifest.ts';
import { isAlive } from '../local/processes.ts';
import { bunzip2 } from './bunzip2.ts';
import { isIntact, modelPath } from './store.ts';
import { findInTar } from './tar.ts';

export type PullOutcome =
  | { readonly kind: 'present' | 'pulled' }
  | {
      readonly kind: 'no_origin' | 'busy' | 'unreachable' | 'refused' | 'wrong_size' | 'wrong_hash' | 'no_member';
      readonly message: string;
    };

export interface PullOptions {
  readonly root: string;
  /** Replaces the public hosts: a pull fetches `https://HOST/PATH` from `MIRROR/HOST/PATH`. */
  readonly mirror?: string;
  readonly onProgress?: (receivedBytes: number, totalBytes: number) => void;
}

/**
 * Downloads a model file from its public address; resumes a download that broke off. The file gets its name only after
 * its size and SHA-256 were verified.
 */
export async function pullFile(file: ModelFile, options: PullOptions): Promise<PullOutcome> {
  if (isIntact(options.root, file)) return { kind: 'present' };
  if (!file.origin) {
    return { kind: 'no_origin', message: `models/${file.path} is part of the repository: check it out again.` };
  }
  const target = modelPath(options.root, file);
  const part = `${target}.part`;
  mkdirSync(dirname(target), { recursive: true });
  const lock = `${part}.lock`;
  if (!takeLock(lock)) return { kind: 'busy', message: `Another command downloads models/${file.path}: wait for it.` };
  try {
    return await pullInto(target, part, file, file.origin, options);
  } finally {
    rmSync(lock, { force: true });
  }
}

async function pullInto(
  target: string,
  part: string,
  file: ModelFile,
  origin: FileOrigin,
  options: PullOptions,
): Promise<PullOutcome> {
  const failure = await download(origin, part, options);
  if (failure) return failure;
  if (origin.member === undefined) {
    renameSync(part, target);
    return { kind: 'pulled' };
  }
  return unpack(file, origin, part, target);
}

/** Completes and verifies the part file. @returns undefined on success */
async function download(origin: FileOrigin, part: string, options: PullOptions): Promise<PullOutcome | undefined> {
  let received = sizeOf(part);
  if (received > origin.bytes) {
    rmSync(part, { force: true });
    received = 0;
  }
  if (received < origin.bytes) {
    const address = mirrored(origin.url, options.mirror);
    let response: Response;
    try {
      response = await fetch(address, {
        headers: received > 0 ? { Range: `bytes=${received}-` } : {},
        redirect: 'follow',
      });
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      return { kind: 'unreachable', message: `${address} cannot be reached: ${cause}` };
    }
    if (response.status === 200 && received > 0) {
      rmSync(part, { force: true });
      return download(origin, part, options); // the server does not support ranges
    }
    if ((response.status !== 200 && response.status !== 206) || !response.body) {
      await response.body?.cancel();
      return { kind: 'refused', message: `${address} answered ${response.status}.` };
    }
    const limit = origin.bytes;
    const limited = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunks) {
        received += chunk.length;
        if (received > limit) return; // refused below because of its size
        options.onProgress?.(received, limit);
        yield chunk;
      }
    };
    try {
      await pipeline(
        // Node declares another type for this stream.
        Readable.fromWeb(response.body as ReadableStream<Uint8Array>),
        limited,
        createWriteStream(part, { flags: 'a' }),
      );
    } catch (error) {
      const brokeOff = `${address} broke off after ${received} of ${limit} bytes (${String(error)})`;
      return { kind: 'unreachable', message: `${brokeOff}; run the same command to resume.` };
    }
  }
  // The file on the disk may have another size than the download.
  if (received !== origin.bytes || sizeOf(part) !== origin.bytes) {
    rmSync(part, { force: true });
    return {
      kind: 'wrong_size',
      message: `${origin.url} does not have the pinned size of ${origin.bytes} bytes; refused.`,
    };
  }
  const sha256 = await hashOf(part);
  if (sha256 !== origin.sha256) {
    rmSync(part, { force: true });
    return {
      kind: 'wrong_hash',
      message: `${origin.url} has SHA-256 ${sha256} instead of the pinned ${origin.sha256}; refused and removed.`,
    };
  }
  return undefined;
}

/** Prevents two commands from writing to the same part file. Takes over the lock of a killed command. */
function takeLock(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const owner = existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
    if (owner > 0 && isAlive(owner)) return false;
    rmSync(path, { force: true });
    return takeLock(path);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function unpack(file: ModelFile, origin: FileOrigin, archive: string, target: string): PullOutcome {
  const member = origin.member ?? '';
  const bytes = findInTar(bunzip2(readFileSync(archive)), member);
  rmSync(archive);
  if (!bytes) return { kind: 'no_member', message: `${basename(origin.url)} contains no ${member}.` };
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (bytes.length !== file.bytes || sha256 !== file.sha256) {
    return { kind: 'wrong_hash', message: `${member} in ${basename(origin.url)} is not the pinned file; refused.` };
  }
  writeFileSync(`${target}.new`, bytes);
  renameSync(`${target}.new`, target);
  return { kind: 'pulled' };
}

function mirrored(url: string, mirror: string | undefined): string {
  if (!mirror) return url;
  const { host, pathname, search } = new URL(url);
  return `${mirror.replace(/\/+$/, '')}/${host}${pathname}${search}`;
}
