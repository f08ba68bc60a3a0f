import { BenchService } from '../bench-service.ts';
import { table } from '../report.ts';
import { say } from '../shared.ts';
import type { Recording } from './hour.ts';
import { countOf, runJob, SETTING, seconds, succeed } from './job.ts';
import { asMp4, padded } from './mp4.ts';
import { type OriginOptions, serveOrigin } from './origins.ts';
import { SLOW_BYTES_PER_SECOND } from './slow.ts';

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
