import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { BenchService } from '../bench-service.ts';
import { table } from '../report.ts';
import { cacheDir, say } from '../shared.ts';
import type { Recording } from './hour.ts';
import { countOf, firstShardSent, median, runJob, SETTING, seconds, succeed } from './job.ts';
import { type Origin, type OriginOptions, serveOrigin } from './origins.ts';

/** Where the index of an MP4 lies. */
type IndexPlace = 'first' | 'last';

/** The recording as AAC in MP4, by ffmpeg, kept in the cache. */
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
 * A copy of an MP4 with its index last, with a `free` box in front of the index that makes it so large. Sparse on the
 * disk.
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

const LARGEST_BYTES = 1024 ** 3;
const CUT_BYTES = 5e6;
const LIMIT_MS = 15 * 60_000;

interface Case {
  readonly name: string;
  readonly path: string;
  readonly options?: OriginOptions;
  /** Whose turns, from a plain origin, this one's should be. */
  readonly like: string;
}

/**
 * Origins that are not plain.
 *
 * @param recordings `whole`; `other`, which is there at first where a file changes; `short`, for the origin that is
 * slow
 */
export async function measureOdd(
  { whole, other, short }: Readonly<Record<'whole' | 'other' | 'short', Recording>>,
  warmUp: string,
): Promise<string> {
  const mp3 = whole.path;
  const [first, last] = [asMp4(mp3, 'first'), asMp4(mp3, 'last')];
  const large = padded(last, LARGEST_BYTES);
  const cases: readonly Case[] = [
    { name: 'plain: ranges, length, ETag', path: mp3, like: mp3 },
    { name: 'no ranges', path: mp3, options: { hasRanges: false }, like: mp3 },
    { name: 'no validator', path: mp3, options: { hasValidator: false }, like: mp3 },
    { name: 'chunked, without a length', path: mp3, options: { hasLength: false }, like: mp3 },
    { name: 'closes the connection every 5 MB', path: mp3, options: { cutEveryBytes: CUT_BYTES }, like: mp3 },
    { name: 'another recording from half-way on', path: other.path, options: { changesTo: mp3 }, like: mp3 },
    {
      name: `${(short.seconds / 60).toFixed(0)} min at 20 KiB/s`,
      path: short.path,
      options: { bytesPerSecond: SLOW_BYTES_PER_SECOND },
      like: short.path,
    },
    { name: 'never ends, a radio by its headers', path: mp3, options: { isEndless: true, isRadio: true }, like: mp3 },
    { name: 'never ends, and does not say so', path: mp3, options: { isEndless: true }, like: mp3 },
    { name: 'MP4, index first', path: first, like: first },
    { name: 'MP4, index last', path: last, like: first },
    { name: 'MP4, index last, no ranges', path: last, options: { hasRanges: false }, like: first },
    { name: 'MP4 of 1 GiB, index last', path: large, like: first },
    { name: 'MP4 of 1 GiB, index last, no ranges', path: large, options: { hasRanges: false }, like: first },
  ];
  const rows: string[][] = [];
  const service = await BenchService.start();
  try {
    await service.raiseLimits();
    await service.diarize(warmUp, { model: SETTING });
    const turns = new Map<string, string>();
    for (const like of new Set(cases.map((one) => one.like))) turns.set(like, await plainTurns(service, like));
    for (const one of cases) rows.push(await measureCase(service, one, turns.get(one.like)!));
  } finally {
    await service.stop();
  }
  return `Jobs of ${(whole.seconds / 60).toFixed(0)} minutes, ${SETTING}, one after the other in one service. The MP4 of 1
GiB has a \`free\` box between sound and index. Copied: the service has copied the recording into its bucket and read
the copy.

${table(['origin', 'outcome', 'created to end', 'requests to the origin', 'copied'], rows, 2)}`;
}

async function plainTurns(service: BenchService, path: string): Promise<string> {
  const origin = await serveOrigin(path);
  try {
    return JSON.stringify((await succeed(service, origin)).output?.diarization);
  } finally {
    await origin.close();
  }
}

async function measureCase(service: BenchService, { name, path, options }: Case, turns: string): Promise<string[]> {
  say(name);
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
/** After the end of the jobs of slow origins their connections are closed within the patience for a server. */
const CLOSING_MS = 60_000;

interface Run {
  readonly wallMs: number;
  readonly firstShardMs: number;
}

/** One job alone, and behind jobs whose origins are slow. */
export async function measureSlow(recording: Recording, warmUp: string): Promise<string> {
  const alone: Run[] = [];
  const behind: Run[] = [];
  let copied = 0;
  const service = await BenchService.start();
  const plain = await serveOrigin(recording.path);
  const run = async (): Promise<Run> => {
    const job = await succeed(service, plain);
    return { wallMs: job.wallMs, firstShardMs: firstShardSent(job) ?? job.wallMs };
  };
  try {
    await service.raiseLimits();
    await service.diarize(warmUp, { model: SETTING });
    for (let round = 0; round < RUNS; round++) {
      say(`alone and behind ${SLOW_ORIGINS} slow origins, run ${round + 1} of ${RUNS}`);
      alone.push(await run());
      const origins: Origin[] = [];
      const jobs: string[] = [];
      try {
        for (let index = 0; index < SLOW_ORIGINS; index++) {
          const origin = await serveOrigin(recording.path, { bytesPerSecond: SLOW_BYTES_PER_SECOND });
          origins.push(origin);
          jobs.push(await service.create({ url: origin.url, model: SETTING }));
        }
        behind.push(await run());
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
    const [one, other] = [alone, behind].map((runs) => median(runs.map((each) => each[what])));
    const name = what === 'wallMs' ? '**created to output**' : 'created to the message of the first shard';
    return [name, seconds(one), seconds(other), (other / one).toFixed(2)];
  });
  return `A job of ${(recording.seconds / 60).toFixed(0)} minutes of MP3 from a plain origin, ${SETTING}, alone and right
behind ${SLOW_ORIGINS} jobs of the same account whose origins give 20 KiB/s each; medians of ${RUNS} alternating runs.
By the end of these runs ${copied} of the ${RUNS * SLOW_ORIGINS} slow origins were being copied.

${table(['', 'alone', 'behind slow origins', 'ratio'], rows)}`;
}

/** Waits until the service has let go of all origins. */
async function closed(origins: readonly Origin[]): Promise<void> {
  const end = Date.now() + CLOSING_MS;
  while (origins.some((origin) => origin.openAnswers() > 0) && Date.now() < end)
    await new Promise((wake) => setTimeout(wake, 200));
}
