import { Command } from 'commander';
import type { IdentifyOutput } from '../sdk/types.ts';
import { openBatch, runBatch } from './batch.ts';
import { callersDir, type Session } from './job.ts';
import type { Recording } from './recording.ts';
import { note } from './run.ts';
import {
  addSpeakerOptions,
  checkCounts,
  JOB_HELP,
  type RequestOptions,
  type ResultOptions,
} from './speaker-options.ts';
import { collectVoice, identify, openVoices, percent } from './voices.ts';

interface Options extends RequestOptions, ResultOptions {
  readonly voiceprint: readonly [string, string][];
  readonly threshold?: number;
  readonly several?: boolean;
}

async function run(names: readonly string[], options: Options): Promise<void> {
  const { format: requestedFormat, json, output, voiceprint, threshold, several, ...request } = options;
  checkCounts(request);
  const baseDir = callersDir('identify');
  const voices = openVoices(voiceprint, baseDir);
  const format = json ? 'json' : requestedFormat;
  const reads = voiceprint.map(([, file]) => file);
  const batch = await openBatch(names, { baseDir, format, output, reads });
  const matching = { threshold, exclusive: !several };
  const work = (session: Session, recording: Recording) =>
    identify<IdentifyOutput>(session, recording, voices, { ...request, matching });
  await runBatch(batch, format, work, ({ voiceprints }) => {
    for (const { speaker, match, confidence } of voiceprints) {
      const scores = Object.entries(confidence).map(([label, value]) => `${label} ${value}`);
      note(`${speaker}: ${match ?? 'no match'} (${scores.join(', ')})`);
    }
  });
}

export const command = addSpeakerOptions(
  new Command('identify')
    .description('Finds when known people spoke in recordings.')
    .argument('<files-or-urls...>', 'recording: a file, a pattern, an http(s) address, or - for stdin'),
)
  .requiredOption(
    '--voiceprint <name=file>',
    'recording or voiceprint of a known person; may be repeated',
    collectVoice,
  )
  .option('--threshold <n>', 'lowest confidence of a match, 0 to 100', percent)
  .option('--several', 'allow several speakers to match the same person')
  .addHelpText('after', JOB_HELP)
  .action(run);
