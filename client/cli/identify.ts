import { Command } from 'commander';
import { fileIdOf, formatOutput } from '../format/output.ts';
import type { IdentifyOutput } from '../sdk/types.ts';
import { deliver, fetchedAgain, openDestination } from './deliver.ts';
import { callersDir, withService } from './job.ts';
import { openRecording } from './recording.ts';
import { note } from './run.ts';
import {
  addSpeakerOptions,
  checkCounts,
  JOB_HELP,
  type ResultOptions,
  type SpeakerOptions,
} from './speaker-options.ts';
import { collectVoice, identify, openVoices, percent } from './voices.ts';

interface Options extends SpeakerOptions, ResultOptions {
  readonly voiceprint: readonly [string, string][];
  readonly threshold?: number;
  readonly several?: boolean;
}

async function run(fileOrUrl: string, options: Options): Promise<void> {
  const { format, output, voiceprint, threshold, several, ...request } = options;
  checkCounts(request);
  const baseDir = callersDir('identify');
  const recording = openRecording(fileOrUrl, baseDir);
  const voices = openVoices(voiceprint, baseDir);
  const destination = openDestination(output, baseDir, [fileOrUrl, ...voiceprint.map(([, file]) => file)]);
  const matching = { threshold, exclusive: !several };
  const { output: result, address } = await withService((session) =>
    identify<IdentifyOutput>(session, recording, voices, { ...request, matching }),
  );
  for (const { speaker, match, confidence } of result.voiceprints) {
    const scores = Object.entries(confidence).map(([label, value]) => `${label} ${value}`);
    note(`${speaker}: ${match ?? 'nobody of these'} (${scores.join(', ')})`);
  }
  await deliver(formatOutput(result, format, fileIdOf(fileOrUrl)), destination, fetchedAgain(address, format));
}

export const command = addSpeakerOptions(
  new Command('identify')
    .description('Tells who of the people you know spoke when in a recording.')
    .argument('<file-or-url>', 'recording, a file or an http(s) address'),
)
  .requiredOption('--voiceprint <name=file>', 'a recording or voiceprint of somebody; may be repeated', collectVoice)
  .option('--threshold <n>', 'least confidence of a match, 0 to 100', percent)
  .option('--several', 'let several speakers match the same person')
  .addHelpText('after', JOB_HELP)
  .action(run);
