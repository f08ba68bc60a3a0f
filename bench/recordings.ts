import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { decodeFile } from '../client/audio/file.ts';
import { CliError, EXIT } from '../client/cli/run.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import type { AudioPorts } from '../src/audio/recording.ts';
import { type LabelledSegment, parseSingleFileRttm, toMicros } from './score/der.ts';
import { cacheDir, logProgress, sharedPath } from './shared.ts';

/** Labelled recordings: the sets and their folders below `../shared/audio`. */
const FOLDERS = {
  short: 'real/short',
  real: 'real',
  acted: 'real/acted',
  meetings: 'meetings',
  dialogues: 'dialogues',
  simulated: 'simulated',
} as const;
/** Recordings that `training/calibration/dev_sets.py` generates for the choice of parameters. */
const DEV_SETS = ['monologues', 'brief', 'alike', 'many', 'far'] as const;
/** The meetings of 5 to 20 minutes that `training/meetings` generates. */
const GENERATED_SET = 'generated';
type RecordingSet = keyof typeof FOLDERS | (typeof DEV_SETS)[number] | typeof GENERATED_SET;

export interface LabelledRecording {
  readonly set: RecordingSet;
  readonly name: string;
  readonly path: string;
  /** 16 kHz mono, decoded by the service's code */
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
}

/** All labelled recordings, ordered by set and name; undefined if `../shared/audio` is missing. */
export async function loadRecordings(ports: AudioPorts): Promise<LabelledRecording[] | undefined> {
  const recordings: LabelledRecording[] = [];
  for (const [set, name] of Object.entries(FOLDERS)) {
    const folder = sharedPath('audio', name);
    if (!folder) return undefined;
    recordings.push(...(await loadFolder(folder, set as keyof typeof FOLDERS, ports)));
  }
  return recordings;
}

/** The generated sets for the choice of parameters, from the folder `ROLLCALL_DEV_SETS`; empty if it is unset. */
export async function loadDevSets(ports: AudioPorts): Promise<LabelledRecording[]> {
  const folder = process.env.ROLLCALL_DEV_SETS;
  if (!folder) return [];
  const recordings: LabelledRecording[] = [];
  for (const set of DEV_SETS) recordings.push(...(await loadFolder(join(folder, set), set, ports)));
  return recordings;
}

/** The generated meetings, from the folder `ROLLCALL_MEETINGS`; undefined if it is unset. */
export async function loadGeneratedMeetings(ports: AudioPorts): Promise<LabelledRecording[] | undefined> {
  const folder = process.env.ROLLCALL_MEETINGS;
  return folder ? await loadFolder(folder, GENERATED_SET, ports) : undefined;
}

/** The sets of the recordings, in order of first appearance. */
export function setsOf(recordings: readonly LabelledRecording[]): RecordingSet[] {
  return [...new Set(recordings.map(({ set }) => set))];
}

/** @throws CliError for a folder without recordings */
export async function loadFolder(folder: string, set: RecordingSet, ports: AudioPorts): Promise<LabelledRecording[]> {
  const recordings: LabelledRecording[] = [];
  const files = readdirSync(folder).filter((name) => name.endsWith('.flac'));
  // Without recordings the error rate would be 0.
  if (files.length === 0) throw new CliError(EXIT.failed, `there is no FLAC in ${folder}`);
  for (const file of files.sort()) {
    const name = basename(file, '.flac');
    const path = join(folder, file);
    const reference = parseSingleFileRttm(readFileSync(join(folder, `${name}.rttm`), 'utf8'));
    recordings.push({ set, name, path, samples: await decodeFile(path, ports), reference });
  }
  return recordings;
}

/**
 * An MP3 of the given length (44.1 kHz, stereo, 128 kbit/s): the labelled recordings in sequence, repeated as needed.
 * Stored in the cache.
 *
 * @returns its path; undefined if ffmpeg is missing
 */
export function longMp3(recordings: readonly LabelledRecording[], seconds: number): string | undefined {
  const samples = repeated(recordings, seconds * SAMPLE_RATE_HZ);
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const path = join(cacheDir(), `recording-${seconds}s-${digest}.mp3`);
  if (existsSync(path)) return path;
  if (spawnSync('ffmpeg', ['-version']).status !== 0) return undefined;
  logProgress(`making ${path}`);
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
    const chunk = recordings[next % recordings.length].samples.subarray(0, length - filled);
    result.set(chunk, filled);
    filled += chunk.length;
  }
  return result;
}

const VOICES = 10;
/** Each repeat of a conversation has a random gain of at most this, up or down. */
const MAX_GAIN_DB = 6;
/** Level of a repeat's noise below its speech. */
const NOISE_DB = { least: 22, most: 40 };

/** Encodings of long recordings, by ffmpeg. */
const CODINGS = {
  /** 345 MB a day, far below the largest upload. */
  compact: { extension: 'mp3', options: '-ar 22050 -ac 1 -c:a libmp3lame -b:a 32k -f mp3' },
  /** The usual coding of music and podcasts. */
  music: { extension: 'mp3', options: '-ar 44100 -ac 2 -c:a libmp3lame -b:a 128k -f mp3' },
  /** 69 MB a minute. */
  studio: { extension: 'wav', options: '-ar 192000 -ac 2 -c:a pcm_s24le -f wav' },
  /** 17 MB a minute, nearly all of it video. */
  film: {
    extension: 'mkv',
    options: '-ar 48000 -ac 2 -c:a aac -b:a 128k -c:v rawvideo -pix_fmt yuv420p -shortest -f matroska',
    pictures: 'color=gray:s=88x84:r=25',
  },
} as const satisfies Record<string, { extension: string; options: string; pictures?: string }>;

export type Coding = keyof typeof CODINGS;

interface LongConversation {
  readonly path: string;
  readonly seconds: number;
  readonly reference: readonly LabelledSegment[];
}

/**
 * A recording of any length with the same ten speakers: the labelled conversations among ten voices, in random order,
 * each repeat with a random gain and noise. Stored in the cache; generating a day takes about ten minutes.
 *
 * @returns undefined if ffmpeg is missing
 */
export async function tenVoices(
  recordings: readonly LabelledRecording[],
  seconds: number,
  coding: Coding,
): Promise<LongConversation | undefined> {
  const conversations = amongTenVoices(recordings);
  const digest = createHash('sha256').update(JSON.stringify([conversations.map(({ name }) => name), CODINGS[coding]]));
  const stem = join(cacheDir(), `ten-voices-${seconds}s-${digest.digest('hex').slice(0, 12)}`);
  const [path, referencePath] = [`${stem}.${CODINGS[coding].extension}`, `${stem}.json`];
  if (!existsSync(path)) {
    if (spawnSync('ffmpeg', ['-version']).status !== 0) return undefined;
    logProgress(`making ${path}`);
    const reference = await encode(conversations, seconds, coding, path);
    writeFileSync(referencePath, JSON.stringify(reference));
  }
  return { path, seconds, reference: JSON.parse(readFileSync(referencePath, 'utf8')) as LabelledSegment[] };
}

/** The simulated conversations, in order, as long as they have at most ten voices together. */
function amongTenVoices(recordings: readonly LabelledRecording[]): LabelledRecording[] {
  const voices = new Set<string>();
  const chosen: LabelledRecording[] = [];
  for (const recording of recordings.filter(({ set }) => set === 'simulated')) {
    const together = new Set([...voices, ...recording.reference.map(({ speaker }) => speaker)]);
    if (together.size > VOICES) continue;
    for (const voice of together) voices.add(voice);
    chosen.push(recording);
  }
  return chosen;
}

async function encode(
  conversations: readonly LabelledRecording[],
  seconds: number,
  coding: Coding,
  path: string,
): Promise<LabelledSegment[]> {
  const { options, ...rest } = CODINGS[coding];
  const sound = ['-f', 'f32le', '-ar', String(SAMPLE_RATE_HZ), '-ac', '1', '-i', '-'];
  const pictures = 'pictures' in rest ? ['-f', 'lavfi', '-i', rest.pictures] : [];
  const ffmpeg = spawn('ffmpeg', ['-v', 'error', '-y', ...sound, ...pictures, ...options.split(' '), `${path}.part`], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  const ended = once(ffmpeg, 'exit');
  const reference: LabelledSegment[] = [];
  const random = generator(seconds);
  const total = seconds * SAMPLE_RATE_HZ;
  for (let filled = 0; filled < total; ) {
    for (const { samples, reference: segments } of shuffled(conversations, random)) {
      const chunk = varied(samples.subarray(0, total - filled), random);
      const offset = toMicros(filled / SAMPLE_RATE_HZ);
      const end = toMicros((filled + chunk.length) / SAMPLE_RATE_HZ);
      for (const { speaker, startMicros, endMicros } of segments) {
        const segment = { speaker, startMicros: offset + startMicros, endMicros: Math.min(end, offset + endMicros) };
        if (segment.startMicros < segment.endMicros) reference.push(segment);
      }
      if (!ffmpeg.stdin.write(new Uint8Array(chunk.buffer))) await once(ffmpeg.stdin, 'drain');
      filled += chunk.length;
    }
  }
  ffmpeg.stdin.end();
  const [status] = await ended;
  if (status !== 0) throw new Error(`ffmpeg ended with ${status}`);
  renameSync(`${path}.part`, path);
  return reference;
}

function varied(samples: Float32Array, random: () => number): Float32Array {
  const gain = 10 ** ((MAX_GAIN_DB * (2 * random() - 1)) / 20);
  const power = samples.reduce((sum, value) => sum + value * value, 0) / Math.max(1, samples.length);
  const noiseDb = NOISE_DB.least + (NOISE_DB.most - NOISE_DB.least) * random();
  // Uniform noise of amplitude a has the power a² / 3.
  const amplitude = Math.sqrt(3 * power) * 10 ** (-noiseDb / 20);
  return samples.map((value) => gain * (value + amplitude * (2 * random() - 1)));
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const result = [...values];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}

/** Uniform numbers in [0, 1), the same for the same seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
