import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { LabelledRecording } from './recordings.ts';
import { cacheDir, say } from './shared.ts';

const SAMPLE_RATE_HZ = 16000;

/**
 * An MP3 of the given length (44.1 kHz, stereo, 128 kbit/s) made of the labelled recordings one after the other, from the
 * start again when they are used up. Made once and kept in the cache.
 *
 * @returns its path; undefined where ffmpeg is missing
 */
export function longMp3(recordings: readonly LabelledRecording[], seconds: number): string | undefined {
  const samples = repeated(recordings, seconds * SAMPLE_RATE_HZ);
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const path = join(cacheDir(), `recording-${seconds}s-${digest}.mp3`);
  if (existsSync(path)) return path;
  if (spawnSync('ffmpeg', ['-version']).status !== 0) return undefined;
  say(`making ${path}`);
  const input = ['-f', 'f32le', '-ar', String(SAMPLE_RATE_HZ), '-ac', '1', '-i', '-'];
  const output = ['-ar', '44100', '-ac', '2', '-c:a', 'libmp3lame', '-b:a', '128k', '-f', 'mp3', `${path}.part`];
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...input, ...output], { input: bytes });
  renameSync(`${path}.part`, path);
  return path;
}

function repeated(recordings: readonly LabelledRecording[], length: number): Float32Array {
  const result = new Float32Array(length);
  let filled = 0;
  for (let next = 0; filled < length; next++) {
    const piece = recordings[next % recordings.length].samples.subarray(0, length - filled);
    result.set(piece, filled);
    filled += piece.length;
  }
  return result;
}
