import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { Command } from 'commander';
import { nodeAudio } from '../client/audio/ports.ts';
import { CliError, EXIT, runCommand } from '../client/cli/run.ts';
import { projectDir } from '../client/local/paths.ts';
import type { TuningBySetting } from '../src/diarization/model-ports.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import { LIVE } from '../src/live/live-parameters.ts';
import { COMPARISON_HEAD, collect, comparisonRow, named, placeOf, settingsIn } from './comparison.ts';
import { liveEngine, observeStream, openSession } from './live/observe.ts';
import { finishWithOracle } from './oracle.ts';
import { analyse, finish, type MeasuredPack, packOfService } from './pipeline.ts';
import { type LabelledRecording, loadFolder } from './recordings.ts';
import { type DiarizationError, diarizationError, segmentsFromTurns } from './score/der.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';

interface Options {
  readonly network: readonly string[];
  readonly tune: readonly string[];
  readonly settings: readonly Setting[];
  readonly live: string;
  readonly liveTune?: string;
}

type Measured = Record<string, DiarizationError>;

/** The pack in use with other weights of segmentation-v8's kernel. */
function packWithNetwork(label: string, path: string): MeasuredPack {
  const { pack } = packOfService('community-1');
  const { segmentation } = pack;
  if (segmentation.form !== 'split') throw new CliError(EXIT.usage, 'the pack in use has no such kernel');
  const bytes = readFileSync(path);
  const weights = {
    path: relative(join(projectDir, 'models'), resolve(path)),
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
  return { label, pack: { ...pack, segmentation: { ...segmentation, id: label, files: { weights } } } };
}

interface Candidate {
  readonly label: string;
  /** The pack of a setting; live streams use that of community-1. */
  readonly packOf: (setting: Setting) => MeasuredPack;
}

/** A candidate with changed parameters, for `all` settings or one. */
function tuned({ label, packOf }: Candidate, name: string, tuning: TuningBySetting): Candidate {
  return {
    label: `${label}, ${name}`,
    packOf(setting) {
      const { pack } = packOf(setting);
      // The embedder's values override those of the segmentation.
      return { label, pack: { ...pack, embedding: { ...pack.embedding, tuned: tuning } } };
    },
  };
}

function candidates({ network, tune }: Options): Candidate[] {
  const networks = network.map((text) => packWithNetwork(...named(text)));
  const all: Candidate[] = [
    { label: 'pack in use', packOf: packOfService },
    ...networks.map((pack) => ({ label: pack.label, packOf: () => pack })),
  ];
  const tunings = tune.map(named).map(([name, text]) => [name, JSON.parse(text) as TuningBySetting] as const);
  return all.flatMap((one) => [one, ...tunings.map(([name, tuning]) => tuned(one, name, tuning))]);
}

/** All error rates of one recording, by the name of the measurement. */
type Measure = (recording: LabelledRecording) => Promise<Measured>;

async function measureOf(
  { packOf }: Candidate,
  settings: readonly Setting[],
  latenciesMs: readonly number[],
): Promise<Measure> {
  const engines = new Map<Setting, Awaited<ReturnType<typeof liveEngine>>>();
  for (const name of SETTINGS) engines.set(name, await liveEngine(packOf(name)));
  const liveModels = engines.get('community-1')!;
  return async ({ reference, samples }) => {
    const measured: Measured = {};
    for (const name of settings) {
      const setting = settingsOf(name);
      const engine = engines.get(name)!;
      const part = await analyse(samples, engine, setting);
      const output = await finish(part, samples.length, setting, engine.plda);
      measured[name] = diarizationError(reference, segmentsFromTurns(output?.diarization ?? []));
      const oracle = await finishWithOracle(part, samples.length, setting, reference);
      measured[`${name}, perfect clustering`] = diarizationError(reference, segmentsFromTurns(oracle.diarization));
    }
    for (const latencyMs of latenciesMs) {
      const { found, corrected } = await observeStream(openSession(liveModels, latencyMs), samples);
      measured[`live, ${latencyMs} ms`] = diarizationError(reference, found);
      measured[`live, ${latencyMs} ms, corrected`] = diarizationError(reference, corrected);
    }
    return measured;
  };
}

/**
 * Compares segmentation networks and parameters on folders of labelled recordings, to choose those of the pack: error
 * rates of the jobs' settings, with perfect clustering, and of live streams. The report does not contain them.
 */
async function compare(folders: readonly string[], options: Options): Promise<void> {
  if (options.liveTune) Object.assign(LIVE, JSON.parse(options.liveTune));
  const latenciesMs = options.live.split(',').filter(Boolean).map(Number);
  const compared = candidates(options);
  const measures = await Promise.all(compared.map((one) => measureOf(one, options.settings, latenciesMs)));
  process.stdout.write(COMPARISON_HEAD);
  for (const folder of folders) {
    const place = placeOf(folder);
    const recordings = await loadFolder(folder, 'generated', nodeAudio());
    for (const [index, { label }] of compared.entries()) {
      const all: Measured[] = [];
      for (const recording of recordings) {
        logProgress(`${label}: ${place}/${recording.name}`);
        all.push(await measures[index](recording));
      }
      for (const what of Object.keys(all[0] ?? {})) {
        const errors = all.map((measured) => measured[what]);
        process.stdout.write(comparisonRow(place, label, what, errors));
      }
    }
  }
}

const command = new Command('candidates')
  .description(
    'Compares networks and parameters on folders of labelled recordings (FLAC, an RTTM of the same name beside each).',
  )
  .argument('<folders...>')
  .option(
    '--network <name=file>',
    'other weights of the segmentation of community-1, beside the pack in use; may be repeated',
    collect,
    [],
  )
  .option(
    '--tune <name=json>',
    'also with these parameters, as under "tuned" in models/manifest.json; may be repeated',
    collect,
    [],
  )
  .option('--settings <names>', "which of the jobs' settings, with commas", settingsIn, SETTINGS)
  .option('--live <latencies>', 'also live streams at these latencies, in milliseconds, with commas', '')
  .option('--live-tune <json>', 'other values of the parameters in src/live/live-parameters.ts')
  .action(compare);
await runCommand(command);
