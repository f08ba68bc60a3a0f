import { Command } from 'commander';
import { deliver, fetchAdvice, openDestination } from './deliver.ts';
import { findInputs } from './inputs.ts';
import { callersDir, withService } from './job.ts';
import { openRecording } from './recording.ts';
import { CliError, EXIT } from './run.ts';
import { JOB_HELP } from './speaker-options.ts';
import { makeVoiceprint, voiceprintIn } from './voices.ts';

async function run(name: string, { output, json }: { output?: string; json?: boolean }): Promise<void> {
  const baseDir = callersDir('voiceprint');
  const [input] = await findInputs([name], baseDir);
  const recording = openRecording(input.path, baseDir, input.name);
  if (voiceprintIn(recording) !== undefined) throw new CliError(EXIT.usage, `${input.name} is already a voiceprint.`);
  const destination = openDestination(output, baseDir, [input.path]);
  const result = await withService((session) => makeVoiceprint(session, recording, input.name));
  const { voiceprint } = result.output;
  const text = json ? JSON.stringify({ voiceprint }) : voiceprint;
  await deliver(`${text}\n`, destination, fetchAdvice(result.address, 'json'));
}

export const command = new Command('voiceprint')
  .description('Creates a voiceprint from a recording of one person (at most 30 s) and prints it.')
  .argument('<file-or-url>', 'recording: a file, an http(s) address, or - for stdin')
  .option('--output <file>', 'write it to this file, not to stdout')
  .option('--json', 'print JSON')
  .addHelpText('after', JOB_HELP)
  .action(run);
