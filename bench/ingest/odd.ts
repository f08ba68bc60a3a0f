import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { BenchService } from '../bench-service.ts';
import { table } from '../report.ts';
import { cacheDir, logProgress } from '../shared.ts';
import type { Recording } from './hour.ts';
import { countOf, firstShardSent, median, runJob, runToSuccess, SETTING, seconds } from './job.ts';
import { type Origin, type OriginOptions, serveOrigin } from './origins.ts';

/** Position of the index in an MP4. */
type IndexPlace = 'first' | 'last';

/** The recording as AAC in MP4, from the cache or by ffmpeg. */
function asMp4(recording: string, index: IndexPlace): string {
  const path = join(cacheDir(), `${basename(recording, extname(recording))}-moov-${index}.mp4`);
  if (existsSync(path)) return path;
  const coding = ['-vn', '-ar', '44100', '-ac', '1', '-c:a', 'aac', '-b:a', '64k', '-f', 'mp4'];
  const place = index === 'first' ? ['-movflags', '+faststart'] : [];
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', recording, ...coding, ...place, `${path}.part`]);
  renameSync(`${path}.part`, path);
  return path;
}

/**
 * A copy of an MP4 whose index is last, enlarged by a `free` box before the index. A sparse file.
 */
function padded(mp4: string, sizeBytes: number): string {
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

/** Offset of the last box. @throws Error if it has another type */
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

const LARGEST_BYTES = 1024 ** 3;
const CUT_BYTES = 5e6;
const LIMIT_MS = 15 * 60_000;

interface Case {
  readonly name: string;
  readonly path: string;
  readonly options?: OriginOptions;
  /** Recording whose turns, from a plain origin, are expected. */
  readonly expectedOf: string;
}

/**
 * Measures jobs with unusual origins.
 *
 * @param recordings `whole`; `other`, the first version of a file that changes; `short`, for the slow origin
 */
export async function measureOdd(
  { whole, other, short }: Readonly<Record<'whole' | 'other' | 'short', Recording>>,
  warmUp: string,
): Promise<string> {
  const mp3 = whole.path;
  const [first, last] = [asMp4(mp3, 'first'), asMp4(mp3, 'last')];
  const large = padded(last, LARGEST_BYTES);
  const cases: readonly Case[] = [
    { name: 'plain: ranges, length, ETag', path: mp3, expectedOf: mp3 },
    { name: 'no ranges', path: mp3, options: { hasRanges: false }, expectedOf: mp3 },
    { name: 'no validator', path: mp3, options: { hasValidator: false }, expectedOf: mp3 },
    { name: 'chunked, without a length', path: mp3, options: { hasLength: false }, expectedOf: mp3 },
    { name: 'closes the connection every 5 MB', path: mp3, options: { cutEveryBytes: CUT_BYTES }, expectedOf: mp3 },
    { name: 'another recording after the first half', path: other.path, options: { changesTo: mp3 }, expectedOf: mp3 },
    {
      name: `${(short.seconds / 60).toFixed(0)} min at 20 KiB/s`,
      path: short.path,
      options: { bytesPerSecond: SLOW_BYTES_PER_SECOND },
      expectedOf: short.path,
    },
    {
      name: 'endless, with the headers of a radio',
      path: mp3,
      options: { isEndless: true, isRadio: true },
      expectedOf: mp3,
    },
    { name: 'endless, without these headers', path: mp3, options: { isEndless: true }, expectedOf: mp3 },
    { name: 'MP4, index first', path: first, expectedOf: first },
    { name: 'MP4, index last', path: last, expectedOf: first },
    { name: 'MP4, index last, no ranges', path: last, options: { hasRanges: false }, expectedOf: first },
    { name: 'MP4 of 1 GiB, index last', path: large, expectedOf: first },
    { name: 'MP4 of 1 GiB, index last, no ranges', path: large, options: { hasRanges: false }, expectedOf: first },
  ];
  const rows: string[][] = [];
  const service = await BenchService.start();
  try {
    await service.raiseLimits();
    await service.diarize(warmUp, { model: SETTING });
    const turns = new Map<string, string>();
    for (const path of new Set(cases.map(({ expectedOf }) => expectedOf)))
      turns.set(path, await plainTurns(service, path));
    for (const one of cases) rows.push(await measureCase(service, one, turns.get(one.expectedOf)!));
  } finally {
    await service.stop();
  }
  return `Jobs of ${(whole.seconds / 60).toFixed(0)} minutes, ${SETTING}, in sequence in one service. The MP4 of 1 GiB
has a \`free\` box between sound and index. Copied: the service copied the recording into its bucket and read the copy.

${table(['origin', 'outcome', 'created to end', 'requests to the origin', 'copied'], rows, 2)}`;
}

async function plainTurns(service: BenchService, path: string): Promise<string> {
  const origin = await serveOrigin(path);
  try {
    return JSON.stringify((await runToSuccess(service, origin)).output?.diarization);
  } finally {
    await origin.close();
  }
}

async function measureCase(service: BenchService, { name, path, options }: Case, turns: string): Promise<string[]> {
  logProgress(name);
  const origin = await serveOrigin(path, options);
  try {
    const job = await runJob(service, origin, SETTING, LIMIT_MS);
    const isSame = JSON.stringify(job.output?.diarization) === turns;
    const outcome =
      job.fault !== undefined ? `\`${job.fault}\`` : isSame ? 'turns as from a plain origin' : '**other turns**';
    const isCopied = countOf(job.log, 'source_copied') > 0;
    return [name, outcome, seconds(job.wallMs), String(origin.requests()), isCopied ? 'yes' : 'no'];
  } finally {
    await origin.close();
  }
}

const SLOW_ORIGINS = 10;
const SLOW_BYTES_PER_SECOND = 20 * 1024;
const RUNS = 3;
/** Time in which the service closes connections to slow origins after their jobs. */
const CLOSING_MS = 60_000;

interface Run {
  readonly wallMs: number;
  readonly firstShardMs: number;
}

/** Measures a job alone, and after jobs whose origins are slow. */
export async function measureSlow(recording: Recording, warmUp: string): Promise<string> {
  const alone: Run[] = [];
  const afterSlow: Run[] = [];
  let copied = 0;
  const service = await BenchService.start();
  const plain = await serveOrigin(recording.path);
  const run = async (): Promise<Run> => {
    const job = await runToSuccess(service, plain);
    return { wallMs: job.wallMs, firstShardMs: firstShardSent(job) ?? job.wallMs };
  };
  try {
    await service.raiseLimits();
    await service.diarize(warmUp, { model: SETTING });
    for (let round = 0; round < RUNS; round++) {
      logProgress(`alone and after ${SLOW_ORIGINS} slow origins, run ${round + 1} of ${RUNS}`);
      alone.push(await run());
      const origins: Origin[] = [];
      const jobs: string[] = [];
      try {
        for (let index = 0; index < SLOW_ORIGINS; index++) {
          const origin = await serveOrigin(recording.path, { bytesPerSecond: SLOW_BYTES_PER_SECOND });
          origins.push(origin);
          jobs.push(await service.create({ url: origin.url, model: SETTING }));
        }
        afterSlow.push(await run());
      } finally {
        for (const jobId of jobs) await service.cancel(jobId);
        await closed(origins);
        copied += jobs.filter((jobId) => service.logOf(jobId).some(({ event }) => event === 'source_copied')).length;
        for (const origin of origins) await origin.close();
      }
    }
  } finally {
    await plain.close();
    await service.stop();
  }
  const rows = (['wallMs', 'firstShardMs'] as const).map((what) => {
    const [one, other] = [alone, afterSlow].map((runs) => median(runs.map((each) => each[what])));
    const name = what === 'wallMs' ? '**created to output**' : 'created to the message of the first shard';
    return [name, seconds(one), seconds(other), (other / one).toFixed(2)];
  });
  return `A job of ${(recording.seconds / 60).toFixed(0)} minutes of MP3 from a plain origin, ${SETTING}, alone and right
after ${SLOW_ORIGINS} jobs of the same account whose origins send 20 KiB/s each; medians of ${RUNS} alternating runs.
By the end of these runs ${copied} of the ${RUNS * SLOW_ORIGINS} slow origins were being copied.

${table(['', 'alone', 'after slow origins', 'ratio'], rows)}`;
}

/** Waits until the service has closed its connections to all origins. */
async function closed(origins: readonly Origin[]): Promise<void> {
  const end = Date.now() + CLOSING_MS;
  while (origins.some((origin) => origin.openAnswers() > 0) && Date.now() < end)
    await new Promise((wake) => setTimeout(wake, 200));
}
