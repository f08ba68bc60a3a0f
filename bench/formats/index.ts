import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memorySource } from '../../client/audio/file.ts';
import { nodeAudio } from '../../client/audio/ports.ts';
import { projectDir } from '../../client/local/paths.ts';
import { probeAudio } from '../../src/audio/index.ts';
import { table } from '../report.ts';
import { say } from '../shared.ts';
import { CASES, type FormatCase } from './cases.ts';
import { type Comparison, compare, worstDifference } from './compare.ts';
import { decodeNative, encode, toolVersion, writeSource } from './native.ts';
import { decodeOurs, readBothWays } from './ours.ts';

/** Longer than the stretch after which decoders start anew, so that its end is among what is measured. */
const SECONDS = 22;
/** Recordings with more samples than that a second, over all channels, are shorter. */
const MANY_SAMPLES = 100_000;
const SHORT_SECONDS = 6;
const SPEECH = join(projectDir, 'test/fixtures/conversation.mp3');
/** Every single measurement, beside the report. */
const DETAILS = join(projectDir, 'bench/formats/results.csv');

interface Row extends Comparison {
  readonly rateHz: number;
  readonly channels: number;
  readonly speed: number;
  /** Largest difference between the parts of a sharded read and the whole, relative to full scale. */
  readonly shardDifference: number;
}

interface Refused {
  readonly refused: string;
}

/** Codes speech in every format, decodes it with the service's code and with ffmpeg, and compares. */
export async function measureFormats(): Promise<string> {
  const version = toolVersion('ffmpeg');
  if (version === undefined) return 'ffmpeg is not installed: not measured.';
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-formats-'));
  const summary: string[][] = [];
  const details = [
    'container,coding,rate_hz,channels,snr_db,extra_samples,offset_samples,times_real_time,shard_difference',
  ];
  const leftOut: string[] = [];
  try {
    for (const item of CASES) {
      if (item.tool && toolVersion(item.tool, '--version') === undefined) {
        leftOut.push(`${item.container} ${item.coding}: ${item.tool} is not installed.`);
        continue;
      }
      const results = await measureCase(folder, item);
      const rows = results.filter((result): result is Row => 'snrDb' in result);
      const refusals = new Set(results.flatMap((result) => ('refused' in result ? [result.refused] : [])));
      for (const refused of refusals) leftOut.push(`${item.container} ${item.coding}: ${refused}`);
      if (rows.length > 0) summary.push(summarise(item, rows));
      for (const row of rows) details.push(detail(item, row));
      say(`  ${item.container} ${item.coding}: ${rows.length} of ${results.length}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  writeFileSync(DETAILS, `${details.join('\n')}\n`);
  return render(version, summary, leftOut);
}

async function measureCase(folder: string, item: FormatCase): Promise<(Row | Refused)[]> {
  if (item.fixture) return [await measureFile(join(projectDir, 'test/fixtures/formats', item.fixture))];
  const results: (Row | Refused)[] = [];
  for (const rateHz of item.ratesHz) {
    for (const channels of item.channels) {
      const source = join(folder, `${rateHz}-${channels}.wav`);
      const seconds = rateHz * channels > MANY_SAMPLES ? SHORT_SECONDS : SECONDS;
      if (!existsSync(source)) writeSource(source, SPEECH, seconds, rateHz, channels);
      results.push(await measureFile(encode(folder, source, item)));
    }
  }
  return results;
}

async function measureFile(path: string): Promise<Row | Refused> {
  const ports = nodeAudio();
  const source = memorySource(readFileSync(path));
  const probed = await probeAudio(source, ports.decoder);
  if (!probed.ok) return { refused: probed.error.message };
  const index = probed.value;
  const native = decodeNative(path);
  if (native.rateHz !== index.sampleRateHz)
    return { refused: `ffmpeg says ${native.rateHz} Hz, we ${index.sampleRateHz} Hz.` };
  const comparison = compare(await decodeOurs(source, index, ports), native.mono);
  const { whole, sharded, speed } = await readBothWays(source, index, ports);
  const { sampleRateHz: rateHz } = index;
  return { ...comparison, rateHz, channels: native.channels, speed, shardDifference: worstDifference(sharded, whole) };
}

const decibels = (value: number): string => (value === Number.POSITIVE_INFINITY ? 'exact' : value.toFixed(0));

function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? String(low) : `${low} … ${high}`;
}

const list = (values: readonly number[]): string => [...new Set(values)].sort((a, b) => a - b).join(', ');

function summarise({ container, coding }: FormatCase, rows: readonly Row[]): string[] {
  const shards = Math.max(...rows.map(({ shardDifference }) => shardDifference));
  return [
    container,
    coding,
    list(rows.map(({ rateHz }) => rateHz / 1000)),
    list(rows.map(({ channels }) => channels)),
    decibels(Math.min(...rows.map(({ snrDb }) => snrDb))),
    range(rows.map(({ extraSamples }) => extraSamples)),
    range(rows.map(({ offsetSamples }) => offsetSamples)),
    range(rows.map(({ speed }) => Math.round(speed))),
    shards === 0 ? '0' : `${(20 * Math.log10(shards)).toFixed(0)} dB`,
  ];
}

const detail = ({ container, coding }: FormatCase, row: Row): string =>
  [
    container,
    `"${coding}"`,
    row.rateHz,
    row.channels,
    decibels(row.snrDb),
    row.extraSamples,
    row.offsetSamples,
    Math.round(row.speed),
    row.shardDifference.toPrecision(3),
  ].join(',');

function render(version: string, summary: readonly (readonly string[])[], leftOut: readonly string[]): string {
  const head = [
    'container',
    'coding',
    'kHz',
    'channels',
    'SNR dB, worst',
    'length ±',
    'offset',
    '× real time',
    'shards',
  ];
  const parts = [
    `${SECONDS} s of speech (\`test/fixtures/conversation.mp3\`; ${SHORT_SECONDS} s of more than ${MANY_SAMPLES / 1000} 000 samples a second) in channels of different loudness and delay, coded on the spot, then decoded by the service's code and by ` +
      `native ffmpeg (${version.replace(/ Copyright.*/, '')}) to mono at the recording's rate. Each row has the worst of its rates and channel counts; ` +
      "`formats/results.csv` has them all. SNR: our decode against ffmpeg's. Length and offset: samples that ours is longer and later. × real time: decoding and " +
      'resampling to 16 kHz, one thread, in WebAssembly. Shards: largest difference between parts of 3 s read each on its own and the whole, relative to full scale.',
    table(head, summary, 4),
  ];
  if (leftOut.length > 0) parts.push(`Not measured:\n\n${leftOut.map((line) => `- ${line}`).join('\n')}`);
  return parts.join('\n\n');
}
