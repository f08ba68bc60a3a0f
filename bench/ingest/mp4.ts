import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { cacheDir } from '../shared.ts';

/** Where the index of an MP4 lies. */
export type IndexPlace = 'first' | 'last';

/** The recording as AAC in MP4, by ffmpeg, kept in the cache. */
export function asMp4(recording: string, index: IndexPlace): string {
  const path = join(cacheDir(), `${basename(recording, extname(recording))}-moov-${index}.mp4`);
  if (existsSync(path)) return path;
  const coding = ['-vn', '-ar', '44100', '-ac', '1', '-c:a', 'aac', '-b:a', '64k', '-f', 'mp4'];
  const place = index === 'first' ? ['-movflags', '+faststart'] : [];
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', recording, ...coding, ...place, `${path}.part`]);
  renameSync(`${path}.part`, path);
  return path;
}

/**
 * A copy of an MP4 with its index last, with a `free` box in front of the index that makes it so large. Sparse on the
 * disk.
 */
export function padded(mp4: string, sizeBytes: number): string {
  const path = join(cacheDir(), `${basename(mp4, '.mp4')}-${sizeBytes}.mp4`);
  if (existsSync(path)) return path;
  const bytes = readFileSync(mp4);
  const indexAt = lastBox(bytes, 'moov');
  const freeBytes = sizeBytes - bytes.length;
  if (freeBytes < 8) throw new RangeError('the file is larger already');
  const free = Buffer.alloc(8);
  free.writeUInt32BE(freeBytes);
  free.write('free', 4, 'latin1');
  const file = openSync(`${path}.part`, 'w');
  writeSync(file, bytes, 0, indexAt, 0);
  writeSync(file, free, 0, free.length, indexAt);
  writeSync(file, bytes, indexAt, bytes.length - indexAt, indexAt + freeBytes);
  closeSync(file);
  renameSync(`${path}.part`, path);
  return path;
}

/** Where the last box begins. @throws Error when it is another */
function lastBox(bytes: Buffer, type: string): number {
  for (let at = 0; ; ) {
    const size = bytes.readUInt32BE(at);
    // 1: the size follows the type, as a 64-bit number; 0: to the end of the file.
    const length = size === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : size || bytes.length - at;
    if (at + length < bytes.length) {
      at += length;
      continue;
    }
    if (bytes.toString('latin1', at + 4, at + 8) !== type) throw new Error(`the file does not end with ${type}`);
    return at;
  }
}
