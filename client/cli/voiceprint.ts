import { Command } from 'commander';
import { deliver, fetchedAgain, openDestination } from './deliver.ts';
import { callersDir, withService } from './job.ts';
import { openRecording } from './recording.ts';
import { CliError, EXIT } from './run.ts';
import { JOB_HELP } from './speaker-options.ts';
import { makeVoiceprint, printIn } from './voices.ts';

async function run(fileOrUrl: string, { output }: { output?: string }): Promise<void> {
  const baseDir = callersDir('voiceprint');
  const recording = openRecording(fileOrUrl, baseDir);
  if (printIn(recording) !== undefined) throw new CliError(EXIT.usage, `${fileOrUrl} is a voiceprint already.`);
  const destination = openDestination(output, baseDir, [fileOrUrl]);
  const made = await withService((session) => makeVoiceprint(session, recording, fileOrUrl));
  await deliver(`${made.output.voiceprint}\n`, destination, fetchedAgain(made.address, 'json'));
}

export const command = new Command('voiceprint')
  .description('Makes a voiceprint of a recording of one person, at most 30 s, and prints it.')
  .argument('<file-or-url>', 'recording, a file or an http(s) address')
  .option('--output <file>', 'write it there instead of to the standard output')
  .addHelpText('after', JOB_HELP)
  .action(run);
