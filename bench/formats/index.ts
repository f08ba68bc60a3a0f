import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeAudio } from '../../client/audio/ports.ts';
import { projectDir } from '../../client/local/paths.ts';
import { bytesSource } from '../../src/platform/r2-objects.ts';
import { say } from '../shared.ts';
import { CASES, type FormatCase } from './cases.ts';
import { compare, worstDifference } from './compare.ts';
import { decodeNative, encode, isInstalled, toolVersion, writeSource } from './native.ts';
import { decodeOurs, openOurs, readBothWays } from './ours.ts';
import { keyOf, type Row, readRows, rowsTable, writeRows } from './rows.ts';

/** Long enough to include the decoder restart at 90 s, which is also where the resumed decoding starts. */
const SECONDS = 110;
/** Recordings with more samples than that a second, over all channels, are shorter. */
const MANY_SAMPLES = 100_000;
const SHORT_SECONDS = 6;
const SPEECH = join(projectDir, 'test/fixtures/conversation.mp3');
/** Every single measurement, beside the report. */
const DETAILS = join(projectDir, 'bench/formats/results.csv');

type Measurement = Omit<Row, 'container' | 'coding'>;

interface Refused {
  readonly refused: string;
}

/**
 * Codes speech in every format, decodes it with the service's code and with ffmpeg, and compares. `ROLLCALL_FORMATS`, a
 * regular expression, measures only the codings whose name it matches (`^MP4`, `HE-AAC`); the others keep their older
 * rows.
 */
export async function measureFormats(): Promise<string> {
  const version = toolVersion('ffmpeg');
  if (version === undefined) return 'ffmpeg is not installed: not measured.';
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
      say(`  ${keyOf(item)}: ${measured.get(keyOf(item))?.length} of ${results.length}`);
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
    `${SECONDS} s of speech (\`test/fixtures/conversation.mp3\`; ${SHORT_SECONDS} s where there are more than ${MANY_SAMPLES} samples a second) in channels of ` +
      "different loudness and delay, coded on the spot, then decoded by the service's code and by native ffmpeg " +
      `(${version.replace(/ Copyright.*/, '')}) to mono at the recording's rate. Each row has the worst of its rates and channel counts; ` +
      "`formats/results.csv` has them all. SNR: our decode against ffmpeg's. Length and offset: samples that ours is longer and later. × real time: decoding and " +
      'resampling to 16 kHz, one thread, in WebAssembly. Resumed: largest difference between the whole and what another process reads of its last twentieth, relative to full scale.',
    ...(only ? [`Measured in this run: what matches \`${only.source}\`; the other rows are older.`] : []),
    rowsTable(rows),
  ];
  if (leftOut.length > 0) parts.push(`Not measured:\n\n${leftOut.map((line) => `- ${line}`).join('\n')}`);
  return parts.join('\n\n');
}
