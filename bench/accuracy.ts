import { isDeepStrictEqual } from 'node:util';
import { nodeAudio } from '../client/audio/ports.ts';
import type { DiarizeOutput } from '../client/sdk/types.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import { BenchService } from './bench-service.ts';
import { finishWithOracle } from './oracle.ts';
import { ALL_FIELDS, analyse, finish, type MeasuredPack, nodeEngine, packOfService, pldaOf } from './pipeline.ts';
import { type LabelledRecording, loadDevSets, loadGeneratedMeetings, setsOf } from './recordings.ts';
import { table } from './report.ts';
import { type Agreement, agreement, type Judged, judgeOutput } from './score/agreement.ts';
import { type DiarizationError, diarizationError, pool, rate, segmentsFromTurns } from './score/der.ts';
import { meanOverSets, rateOfSet, type SetErrors } from './score/means.ts';
import { logProgress } from './shared.ts';
import { type SweepRow, sherpaVersion, sweepSherpa } from './sherpa.ts';
import { SETTINGS, type Setting } from './speed.ts';

const number = (value: number): string => value.toFixed(1);

/** The accuracy part of the report, or that of the generated meetings. */
function renderAccuracy(
  recordings: readonly LabelledRecording[],
  service: ServiceResult,
  sherpa: readonly SweepRow[] | undefined,
  origin: string,
): string {
  const minutes = recordings.reduce((total, { samples }) => total + samples.length, 0) / SAMPLE_RATE_HZ / 60;
  const beside = sherpa
    ? `sherpa-onnx ${sherpaVersion()}, native, runs segmentation-3.0 in 8 bits and CAM++ in floating point
with its defaults (threshold 0.5), and with threshold 0.8, the best of an earlier sweep.`
    : '**sherpa-onnx was not measured:** segmentation-3.0 in 8 bits or CAM++ is not at hand.';
  const rows = derRows(recordings, service);
  for (const { threshold, errors } of sherpa ?? []) {
    rows.push(['segmentation-3.0-int8', `sherpa-onnx, threshold ${threshold}`, ...ratesOf(recordings, errors)]);
  }
  return `${recordings.length} labelled recordings, ${minutes.toFixed(0)} minutes (${origin}).
DER in per cent, no collar, overlap scored, pooled over a set (monologues: confusion alone). The mean counts every set
the same, without "simulated". In brackets the 95 % interval of the mean (bootstrap over the recordings of every set).
Miss, false alarm and confusion are over all recordings. "Oracle" replaces the clustering by the reference's speakers
and keeps everything else.
${beside} The figures were made in Node with the Worker's code and WebAssembly. The service
gave equal outputs for ${service.provenThroughService.join(', ')} (both settings).

${table(
  [
    'segmentation',
    'what',
    ...setsOf(recordings),
    'mean (interval)',
    'miss',
    'false alarm',
    'confusion',
    'speaker counts right',
  ],
  rows,
  2,
)}

### Recordings

DER and speakers found / speakers there.

${recordingTable(recordings, service)}

### Confidence

The \`confidence\` of a frame against its correctness (exactly the reference's speakers under the best mapping), and
that of a turn's speaker against that speaker talking for at least half of the turn. AUC: probability that a correct one
has a higher confidence than a wrong one. Calibration error: mean distance between confidence and share correct, over
ten bins.

${table(
  ['segmentation', 'setting', 'of', 'number', 'right', 'mean confidence', 'correlation', 'AUC', 'calibration error'],
  service.settings.flatMap((one) => confidenceRows(one.label, one)),
  3,
)}

Frames by confidence, precision-2:

${reliabilityTable(agreement(service.settings[0].frames))}`;
}

function derRows(recordings: readonly LabelledRecording[], { settings }: ServiceResult): string[][] {
  return settings.flatMap(({ label, setting, errors, oracleErrors, givenErrors }) => [
    [label, `**${setting}**`, ...ratesOf(recordings, errors)],
    [label, `${setting}, number of speakers given`, ...ratesOf(recordings, givenErrors)],
    // The oracle knows the speakers: their number is no result.
    [label, `${setting}, oracle clustering`, ...ratesOf(recordings, oracleErrors).slice(0, -1), '–'],
  ]);
}

/** Rates of every set, the mean with its interval, the kinds of error, and recordings with the right speaker count. */
function ratesOf(recordings: readonly LabelledRecording[], errors: readonly DiarizationError[]): string[] {
  const perSet: SetErrors[] = setsOf(recordings).map((set) => ({
    set,
    errors: errors.filter((_, index) => recordings[index].set === set),
  }));
  const { mean, low, high } = meanOverSets(perSet);
  const { miss, falseAlarm, confusion } = rate(pool(errors));
  const right = errors.filter((error) => error.referenceSpeakers === error.hypothesisSpeakers).length;
  return [
    ...perSet.map((one) => number(rateOfSet(one))),
    `**${number(mean)}** (${number(low)}–${number(high)})`,
    ...[miss, falseAlarm, confusion].map(number),
    `${right} of ${errors.length}`,
  ];
}

function recordingTable(recordings: readonly LabelledRecording[], { settings }: ServiceResult): string {
  const rows = recordings.map(({ set, name }, index) => {
    const cells = settings.flatMap(({ errors }) => {
      const error = errors[index];
      return [number(rate(error).der), `${error.hypothesisSpeakers} / ${error.referenceSpeakers}`];
    });
    return [`${set}/${name}`, ...cells];
  });
  return table(['recording', ...settings.flatMap(({ setting }) => [setting, 'speakers'])], rows);
}

function confidenceRows(label: string, { setting, frames, turns }: SettingResult): string[][] {
  const row = (what: string, judged: readonly Judged[]): string[] => {
    const { count, shareRight, meanConfidence, correlation, auc, calibrationError } = agreement(judged);
    const values = [shareRight, meanConfidence, correlation, auc, calibrationError];
    return [label, setting, what, String(count), ...values.map((value) => value?.toFixed(3) ?? 'undefined')];
  };
  return [row('frames', frames), row('turns', turns)];
}

function reliabilityTable({ bins }: Agreement): string {
  const rows = bins
    .filter(({ count }) => count > 0)
    .map(({ fromConfidence, count, meanConfidence, shareRight }) => [
      `${(100 * fromConfidence).toFixed(0)}–${(100 * fromConfidence + 10).toFixed(0)}`,
      String(count),
      (100 * meanConfidence).toFixed(1),
      (100 * shareRight).toFixed(1),
    ]);
  return table(['confidence', 'frames', 'mean', 'right, %'], rows);
}

/** Results of one setting and pack over all recordings, in the order of the recordings. */
interface SettingResult {
  /** Segmentation model of the setting. */
  readonly label: string;
  readonly setting: Setting;
  readonly errors: readonly DiarizationError[];
  /** With the true speakers instead of the clustering. */
  readonly oracleErrors: readonly DiarizationError[];
  /** With the true number of speakers requested. */
  readonly givenErrors: readonly DiarizationError[];
  readonly frames: readonly Judged[];
  readonly turns: readonly Judged[];
}

interface ServiceResult {
  readonly settings: readonly SettingResult[];
  /** Names of the recordings whose output here was compared with that of the real service. */
  readonly provenThroughService: readonly string[];
}

/** DER, speaker counts and confidences on the labelled recordings, beside sherpa-onnx. */
export async function measureAccuracy(labelled: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!labelled) return '**Not measured:** the labelled recordings of `../shared/audio` are not here.';
  const recordings = [...labelled, ...(await loadDevSets(nodeAudio()))];
  return renderAccuracy(recordings, await measureService(recordings), sweepSherpa(recordings), '`../shared/audio`');
}

/** The accuracy section on the generated meetings. */
export async function measureMeetings(): Promise<string> {
  const recordings = await loadGeneratedMeetings(nodeAudio());
  if (!recordings) return '**Not measured:** `ROLLCALL_MEETINGS` names no folder of generated meetings.';
  return renderAccuracy(recordings, await measureService(recordings), undefined, 'made by `training/meetings`');
}

async function measureService(recordings: readonly LabelledRecording[]): Promise<ServiceResult> {
  // Compared first: a mismatch must end the run before the long measurement.
  const provenThroughService = await compareWithService(recordings);
  const settings: SettingResult[] = [];
  for (const setting of SETTINGS) settings.push(await measureSetting(packOfService(setting), setting, recordings));
  return { settings, provenThroughService };
}

async function measureSetting(
  pack: MeasuredPack,
  setting: Setting,
  recordings: readonly LabelledRecording[],
): Promise<SettingResult> {
  const errors: DiarizationError[] = [];
  const oracleErrors: DiarizationError[] = [];
  const givenErrors: DiarizationError[] = [];
  const frames: Judged[] = [];
  const turns: Judged[] = [];
  const engine = await nodeEngine(pack);
  const plda = pldaOf(pack);
  for (const { name, reference, samples } of recordings) {
    logProgress(`${setting} with ${pack.label}: ${name}`);
    const part = await analyse(samples, engine, settingsOf(setting));
    const output = await finish(part, samples.length, settingsOf(setting), plda);
    const found = segmentsFromTurns(output?.diarization ?? []);
    const error = diarizationError(reference, found);
    errors.push(error);
    const given = await finish(part, samples.length, settingsOf(setting), plda, {
      numSpeakers: error.referenceSpeakers,
    });
    givenErrors.push(diarizationError(reference, segmentsFromTurns(given?.diarization ?? [])));
    const oracle = await finishWithOracle(part, samples.length, settingsOf(setting), reference);
    oracleErrors.push(diarizationError(reference, segmentsFromTurns(oracle.diarization)));
    const judged = judgeOutput(reference, output);
    frames.push(...judged.frames);
    turns.push(...judged.turns);
  }
  return { label: pack.label, setting, errors, oracleErrors, givenErrors, frames, turns };
}

/**
 * Checks on the shortest recording of each set that the service's output equals that of this process, which makes the
 * tables because it is faster.
 *
 * @throws Error if an output differs
 */
async function compareWithService(recordings: readonly LabelledRecording[]): Promise<string[]> {
  const shortest = setsOf(recordings).map((set) =>
    recordings
      .filter((one) => one.set === set)
      .reduce((least, one) => (one.samples.length < least.samples.length ? one : least)),
  );
  const service = await BenchService.start();
  try {
    for (const model of SETTINGS) {
      const pack = packOfService(model);
      const engine = await nodeEngine(pack);
      const plda = pldaOf(pack);
      for (const { name, path, samples: audio } of shortest) {
        logProgress(`${model} through the service: ${name}`);
        const part = await analyse(audio, engine, settingsOf(model));
        const here = await finish(part, audio.length, settingsOf(model), plda);
        const there: DiarizeOutput = (await service.diarize(path, { model, ...ALL_FIELDS })).output;
        if (!isDeepStrictEqual(here, there)) {
          throw new Error(`${model} gives a different result through the service for ${name}`);
        }
      }
    }
  } finally {
    await service.stop();
  }
  return shortest.map(({ name }) => name);
}
