import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeAudio } from '../../client/audio/ports.ts';
import { projectDir } from '../../client/local/paths.ts';
import { bytesSource } from '../../src/platform/r2-objects.ts';
import { table } from '../report.ts';
import { logProgress } from '../shared.ts';
import { CASES, type FormatCase } from './cases.ts';
import {
  type Comparison,
  compare,
  decodeNative,
  decodeOurs,
  encode,
  isInstalled,
  openOurs,
  readBothWays,
  toolVersion,
  worstDifference,
  writeSource,
} from './decodings.ts';

/** A recording that was decoded by the service's code and by ffmpeg. */
export interface Row extends Comparison {
  readonly container: string;
  readonly coding: string;
  readonly rateHz: number;
  readonly channels: number;
  /** Seconds of audio per second. */
  readonly speed: number;
  /** Largest difference of a resumed read to a whole one, relative to full scale. */
  readonly shardDifference: number;
}

const HEAD = 'container,coding,rate_hz,channels,snr_db,extra_samples,offset_samples,times_real_time,shard_difference';

const decibels = (value: number): string => (value === Number.POSITIVE_INFINITY ? 'exact' : value.toFixed(0));

/** Writes rows as comma-separated values. */
export function writeRows(path: string, rows: readonly Row[]): void {
  const lines = rows.map((row) =>
    [
      row.container,
      `"${row.coding}"`,
      row.rateHz,
      row.channels,
      decibels(row.snrDb),
      row.extraSamples,
      row.offsetSamples,
      Math.round(row.speed),
      row.shardDifference.toPrecision(3),
    ].join(','),
  );
  writeFileSync(path, `${[HEAD, ...lines].join('\n')}\n`);
}

/** Reads rows of `writeRows`; empty if the file does not exist. */
export function readRows(path: string): Row[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const match = /^([^,]+),"([^"]*)",(.+)$/.exec(line);
      if (!match) return [];
      const [rateHz, channels, snr, extraSamples, offsetSamples, speed, shardDifference] = match[3].split(',');
      return [
        {
          container: match[1],
          coding: match[2],
          rateHz: Number(rateHz),
          channels: Number(channels),
          snrDb: snr === 'exact' ? Number.POSITIVE_INFINITY : Number(snr),
          extraSamples: Number(extraSamples),
          offsetSamples: Number(offsetSamples),
          speed: Number(speed),
          shardDifference: Number(shardDifference),
        },
      ];
    });
}

/** A table with a line for each coding and container, with the worst of its rows. */
export function rowsTable(rows: readonly Row[]): string {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  const head = ['container', 'coding', 'kHz', 'channels', 'SNR dB', 'length ±', 'offset', '× real time', 'shards'];
  return table(head, [...groups.values()].map(summarise), 4);
}

/** Names a coding in a container. */
const keyOf = ({ container, coding }: { readonly container: string; readonly coding: string }): string =>
  `${container} ${coding}`;

function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? String(low) : `${low} … ${high}`;
}

const list = (values: readonly number[]): string => [...new Set(values)].sort((a, b) => a - b).join(', ');

function summarise(rows: readonly Row[]): string[] {
  const shards = Math.max(...rows.map(({ shardDifference }) => shardDifference));
  return [
    rows[0].container,
    rows[0].coding,
    list(rows.map(({ rateHz }) => rateHz / 1000)),
    list(rows.map(({ channels }) => channels)),
    decibels(Math.min(...rows.map(({ snrDb }) => snrDb))),
    range(rows.map(({ extraSamples }) => extraSamples)),
    range(rows.map(({ offsetSamples }) => offsetSamples)),
    range(rows.map(({ speed }) => Math.round(speed))),
    shards === 0 ? '0' : `${(20 * Math.log10(shards)).toFixed(0)} dB`,
  ];
}

/** Long enough to include the decoder restart at 90 s, which is also where the resumed decoding starts. */
const SECONDS = 110;
/** Recordings with more samples per second, over all channels, are shorter. */
const MANY_SAMPLES = 100_000;
const SHORT_SECONDS = 6;
const SPEECH = join(projectDir, 'test/fixtures/conversation.mp3');
/** File of all measurements. */
const DETAILS = join(projectDir, 'bench/formats/results.csv');

type Measurement = Omit<Row, 'container' | 'coding'>;

interface Refused {
  readonly refused: string;
}

/**
 * Encodes speech in every format, decodes it with the service's code and with ffmpeg, and compares. `ROLLCALL_FORMATS`,
 * a regular expression (`^MP4`, `HE-AAC`), limits the measurement to matching codings; others keep their older rows.
 */
export async function measureFormats(): Promise<string> {
  const version = toolVersion('ffmpeg');
  if (version === undefined) return '**Not measured:** ffmpeg is not installed.';
  const only = process.env.ROLLCALL_FORMATS === undefined ? undefined : new RegExp(process.env.ROLLCALL_FORMATS);
  const measured = new Map<string, Row[]>();
  const leftOut: string[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-formats-'));
  try {
    for (const item of CASES.filter((candidate) => only?.test(keyOf(candidate)) ?? true)) {
      const results =
        item.tool && !isInstalled(item.tool)
          ? [{ refused: `${item.tool} is not installed.` }]
          : await measureCase(folder, item);
      const refusals = new Set(results.flatMap((result) => ('refused' in result ? [result.refused] : [])));
      for (const refused of refusals) leftOut.push(`${keyOf(item)}: ${refused}`);
      measured.set(
        keyOf(item),
        results.flatMap((result) =>
          'snrDb' in result ? [{ container: item.container, coding: item.coding, ...result }] : [],
        ),
      );
      logProgress(`  ${keyOf(item)}: ${measured.get(keyOf(item))?.length} of ${results.length}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  const older = only ? readRows(DETAILS) : [];
  const rows = CASES.flatMap((item) => measured.get(keyOf(item)) ?? older.filter((row) => keyOf(row) === keyOf(item)));
  writeRows(DETAILS, rows);
  return render(version, rows, leftOut, only);
}

async function measureCase(folder: string, item: FormatCase): Promise<(Measurement | Refused)[]> {
  if (item.fixture) return [await measureFile(join(projectDir, 'test/fixtures/formats', item.fixture))];
  const results: (Measurement | Refused)[] = [];
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

async function measureFile(path: string): Promise<Measurement | Refused> {
  const ports = nodeAudio();
  const source = bytesSource(readFileSync(path));
  const opened = await openOurs(source, ports);
  if (!opened.ok) return { refused: opened.error.message };
  const { sampleRateHz: rateHz } = opened.value;
  const native = decodeNative(path);
  if (native.rateHz !== rateHz) return { refused: `ffmpeg says ${native.rateHz} Hz, we ${rateHz} Hz.` };
  const comparison = compare(await decodeOurs(source, ports), native.mono);
  const { whole, resumed, speed } = await readBothWays(source, ports);
  return { ...comparison, rateHz, channels: native.channels, speed, shardDifference: worstDifference(resumed, whole) };
}

function render(version: string, rows: readonly Row[], leftOut: readonly string[], only: RegExp | undefined): string {
  const parts = [
    `${SECONDS} s of speech (\`test/fixtures/conversation.mp3\`; ${SHORT_SECONDS} s above ${MANY_SAMPLES} samples a ` +
      "second) in channels of different loudness and delay, encoded in this run, then decoded by the service's code " +
      `and by native ffmpeg (${version.replace(/ Copyright.*/, '')}) to mono at the recording's rate. Each row has ` +
      'the worst of its rates and channel counts; `formats/results.csv` has all values. SNR: our decode against ' +
      "ffmpeg's. Length and offset: samples by which ours is longer and later. × real time: decoding and resampling " +
      'to 16 kHz, one thread, in WebAssembly. Resumed: largest difference, relative to full scale, between a whole ' +
      'read and one whose last twentieth is read by a resumed reader.',
    ...(only ? [`Measured in this run: rows that match \`${only.source}\`; the others are older.`] : []),
    rowsTable(rows),
  ];
  if (leftOut.length > 0) parts.push(`Not measured:\n\n${leftOut.map((line) => `- ${line}`).join('\n')}`);
  return parts.join('\n\n');
}
