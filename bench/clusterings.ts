import { Command } from 'commander';
import { nodeAudio } from '../client/audio/ports.ts';
import { CliError, EXIT, runCommand } from '../client/cli/run.ts';
import type { Tuning } from '../src/diarization/model-ports.ts';
import { type DiarizationSettings, settingsOf, withTuning } from '../src/diarization/parameters.ts';
import type { PartReader } from '../src/diarization/part.ts';
import { COMPARISON_HEAD, collect, comparisonRow, named, placeOf, settingsIn } from './comparison.ts';
import { liveEngine } from './live/observe.ts';
import { finishWithOracle } from './oracle.ts';
import { analysisOf, finish, keptPart, packOfService, pldaOf } from './pipeline.ts';
import { type LabelledRecording, loadFolder } from './recordings.ts';
import { type DiarizationError, diarizationError, segmentsFromTurns } from './score/der.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';

interface Options {
  readonly tune: readonly string[];
  readonly settings: readonly Setting[];
  readonly number: boolean;
}

function tuningOf(text: string): [string, Tuning] {
  const [name, json] = named(text);
  const tuning = JSON.parse(json) as Tuning;
  const changes = (base: DiarizationSettings) => analysisOf(withTuning(base, { all: tuning })) !== analysisOf(base);
  if (SETTINGS.some((name) => changes(settingsOf(name)))) {
    throw new CliError(EXIT.usage, `${name} changes the analysis, which is done once; candidates.ts tries such`);
  }
  return [name, tuning];
}

/**
 * Compares parameters of the assembly (mainly of the clustering) on folders of labelled recordings. The models run once
 * over a recording; their results are kept in `parts` of the bench's cache, so that a hundred tunings take minutes.
 * Delete that folder when code of the analysis changes. The report does not contain the results.
 */
async function compare(folders: readonly string[], options: Options): Promise<void> {
  const pack = packOfService();
  const engine = await liveEngine(pack);
  const plda = pldaOf(pack);
  const tunings: readonly [string, Tuning][] = [['as it is', {}], ...options.tune.map(tuningOf)];
  process.stdout.write(COMPARISON_HEAD);
  for (const folder of folders) {
    const recordings = await loadFolder(folder, 'generated', nodeAudio());
    for (const name of options.settings) {
      const base = settingsOf(name);
      const all = new Map<string, DiarizationError[]>();
      const add = (label: string, error: DiarizationError) => all.set(label, [...(all.get(label) ?? []), error]);
      for (const recording of recordings) {
        logProgress(`${name}: ${placeOf(folder)}/${recording.name}`);
        const part = await keptPart(recording.samples, engine, pack, base);
        await measure(recording, part, { base, tunings, plda, number: options.number, add });
      }
      for (const [label, errors] of all) process.stdout.write(comparisonRow(placeOf(folder), label, name, errors));
    }
  }
}

interface Measuring {
  readonly base: DiarizationSettings;
  readonly tunings: readonly [string, Tuning][];
  readonly plda: ReturnType<typeof pldaOf>;
  readonly number: boolean;
  readonly add: (label: string, error: DiarizationError) => void;
}

async function measure(
  { reference, samples }: LabelledRecording,
  part: PartReader,
  { base, tunings, plda, number, add }: Measuring,
): Promise<void> {
  const request = number ? { numSpeakers: new Set(reference.map(({ speaker }) => speaker)).size } : {};
  for (const [label, tuning] of tunings) {
    const output = await finish(part, samples.length, withTuning(base, { all: tuning }), plda, request);
    add(label, diarizationError(reference, segmentsFromTurns(output?.diarization ?? [])));
  }
  const oracle = await finishWithOracle(part, samples.length, base, reference);
  add('perfect clustering', diarizationError(reference, segmentsFromTurns(oracle.diarization)));
}

const command = new Command('clusterings')
  .description(
    'Compares parameters of the assembly on folders of labelled recordings (FLAC, an RTTM of the same name beside ' +
      'each). Results of the models are kept in the cache.',
  )
  .argument('<folders...>')
  .option(
    '--tune <name=json>',
    'also with these parameters, by the names of src/diarization/parameters.ts; may be repeated',
    collect,
    [],
  )
  .option('--settings <names>', "which of the jobs' settings, with commas", settingsIn, SETTINGS)
  .option('--number', 'with the true number of speakers given', false)
  .action(compare);
await runCommand(command);
