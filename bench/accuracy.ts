import { isDeepStrictEqual } from 'node:util';
import { nodeAudio } from '../client/audio/ports.ts';
import type { DiarizeOutput } from '../client/sdk/types.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import { renderAccuracy } from './accuracy-tables.ts';
import { BenchService } from './bench-service.ts';
import { judgeOutput } from './judged-output.ts';
import { nodeEngine } from './node-engine.ts';
import { finishWithOracle } from './oracle.ts';
import { type MeasuredPack, packOfService, pldaOf } from './packs.ts';
import { ALL_FIELDS, analyse, finish } from './pipeline.ts';
import { type LabelledRecording, loadDevSets, loadGeneratedMeetings, setsOf } from './recordings.ts';
import type { Judged } from './score/agreement.ts';
import { type DiarizationError, diarizationError } from './score/der.ts';
import { segmentsFromTurns } from './score/rttm.ts';
import { say } from './shared.ts';
import { sweepSherpa } from './sherpa-sweep.ts';
import { SETTINGS, type Setting } from './speed.ts';

/** One setting with one pack over all recordings, in their order. */
export interface SettingResult {
  /** Segmentation model of the setting. */
  readonly label: string;
  readonly setting: Setting;
  readonly errors: readonly DiarizationError[];
  /** The same with the true speakers in place of the clustering. */
  readonly oracleErrors: readonly DiarizationError[];
  /** The same with the true number of speakers asked for. */
  readonly givenErrors: readonly DiarizationError[];
  readonly frames: readonly Judged[];
  readonly turns: readonly Judged[];
}

export interface ServiceResult {
  readonly settings: readonly SettingResult[];
  /** Names of the recordings whose output through the real service was compared with the one measured here. */
  readonly provenThroughService: readonly string[];
}

/** DER, speaker counts and confidences on the labelled recordings, beside sherpa-onnx. */
export async function measureAccuracy(labelled: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!labelled) return '**Not measured:** the labelled recordings of `../shared/audio` are not here.';
  const recordings = [...labelled, ...(await loadDevSets(nodeAudio()))];
  return renderAccuracy(recordings, await measureService(recordings), sweepSherpa(recordings), '`../shared/audio`');
}

/** The same on the generated meetings. */
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
    say(`${setting} with ${pack.label}: ${name}`);
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
 * The tables are made in this process, because it is quicker. That the service gives the same is shown on the shortest
 * recording of each set: its whole answer must be equal.
 *
 * @throws Error when one differs
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
        say(`${model} through the service: ${name}`);
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
