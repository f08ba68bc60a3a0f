import { writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { nodeAudio } from '../client/audio/ports.ts';
import { runCommand } from '../client/cli/run.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import type { SpeakerCount } from '../src/diarization/speaker-count.ts';
import { placeOf } from './comparison.ts';
import { liveEngine } from './live/observe.ts';
import { finish, keptPart, packOfService, pldaOf } from './pipeline.ts';
import { loadFolder } from './recordings.ts';
import { table } from './report.ts';
import { agreement, type Judged, judgeOutput } from './score/agreement.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';

interface Options {
  readonly setting: Setting;
  readonly output?: string;
}

/** [101] by percent of confidence: numbers of wrong and right frames or turns. */
type Counts = readonly (readonly [wrong: number, right: number])[];

function countsOf(judged: readonly Judged[]): Counts {
  const counts = Array.from({ length: 101 }, (): [number, number] => [0, 0]);
  for (const { confidence, right } of judged) counts[Math.round(100 * confidence)][Number(right)]++;
  return counts;
}

/**
 * Reliability of confidences on folders of labelled recordings, and counts for `calibration.confidences` and
 * `calibration.counts` in training.
 * Results of the models are kept as for `clusterings.ts`.
 */
async function measure(folders: readonly string[], { setting, output }: Options): Promise<void> {
  const pack = packOfService();
  const engine = await liveEngine(pack);
  const plda = pldaOf(pack);
  const settings = settingsOf(setting);
  const measured = [];
  for (const folder of folders) {
    const [frames, turns]: [Judged[], Judged[]] = [[], []];
    const counts: { speakers: number; speakerCount: SpeakerCount }[] = [];
    for (const { name, samples, reference } of await loadFolder(folder, 'generated', nodeAudio())) {
      logProgress(`${setting}: ${placeOf(folder)}/${name}`);
      const document = await finish(await keptPart(samples, engine, pack, settings), samples.length, settings, plda);
      const judged = judgeOutput(reference, document);
      for (const one of judged.frames) frames.push(one);
      for (const one of judged.turns) turns.push(one);
      const speakers = new Set(reference.map(({ speaker }) => speaker)).size;
      if (document?.speakerCount) counts.push({ speakers, speakerCount: document.speakerCount });
    }
    measured.push({ folder: placeOf(folder), frames, turns, counts });
  }
  const rows = measured.flatMap(({ folder, frames, turns }) => [
    rowOf(folder, 'frames', frames),
    rowOf(folder, 'turns', turns),
  ]);
  process.stdout.write(`${table(HEAD, rows, 2)}\n`);
  if (output === undefined) return;
  const { confidence } = settings;
  const sets = measured.map(({ folder, frames, turns, counts }) => ({
    folder,
    frames: countsOf(frames),
    turns: countsOf(turns),
    counts,
  }));
  writeFileSync(output, `${JSON.stringify({ setting, confidence, sets })}\n`);
}

const HEAD = ['folder', 'of', 'number', 'right', 'mean confidence', 'AUC', 'calibration error'];

function rowOf(folder: string, what: string, judged: readonly Judged[]): string[] {
  const { count, shareRight, meanConfidence, auc, calibrationError } = agreement(judged);
  const values = [shareRight, meanConfidence, auc, calibrationError];
  return [folder, what, String(count), ...values.map((value) => value?.toFixed(3) ?? 'undefined')];
}

const command = new Command('confidences')
  .description(
    'Compares the confidences of frames and turns with their correctness, on folders of labelled recordings (FLAC, ' +
      'an RTTM of the same name beside each).',
  )
  .argument('<folders...>')
  .addOption(new Option('--setting <name>', "one of the jobs' settings").choices(SETTINGS).default('precision-2'))
  .option('--output <file>', 'JSON with the number of wrong and right ones by per cent of confidence')
  .action(measure);
await runCommand(command);
