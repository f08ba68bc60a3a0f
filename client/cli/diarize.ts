import { Command } from 'commander';
import { fileIdOf, formatOutput } from '../format/output.ts';
import type { DiarizeOptions, DiarizeOutput } from '../sdk/types.ts';
import { optionOfField } from './arguments.ts';
import { deliver, fetchedAgain, openDestination } from './deliver.ts';
import { callersDir, runJob, withService } from './job.ts';
import { openRecording } from './recording.ts';
import { CliError, EXIT } from './run.ts';
import { addSpeakerOptions, checkCounts, JOB_HELP, type ResultOptions } from './speaker-options.ts';
import { collectVoice, identify, openVoices, percent } from './voices.ts';

interface Options extends Omit<DiarizeOptions, 'url' | 'transcription' | 'transcriptionConfig'>, ResultOptions {
  readonly voiceprint?: readonly [string, string][];
  readonly threshold?: number;
  readonly transcribe?: boolean;
  readonly language?: string;
  readonly transcriptionModel?: string;
}

/** What only a diarize job can tell. */
const DIARIZE_ONLY = ['speechProbability', 'crosstalkProbability', 'speakerProbability'] as const;

async function diarize(fileOrUrl: string, options: Options): Promise<void> {
  const { format, output, voiceprint = [], threshold, transcribe, language, transcriptionModel, ...request } = options;
  // Said before an upload that may be long.
  checkCounts(request);
  if (!transcribe && (language !== undefined || transcriptionModel !== undefined)) {
    throw new CliError(EXIT.usage, '--language and --transcription-model need --transcribe.');
  }
  if (transcribe && voiceprint.length > 0) {
    throw new CliError(EXIT.usage, '--transcribe cannot be combined with --voiceprint.');
  }
  if (voiceprint.length > 0 && DIARIZE_ONLY.some((name) => request[name])) {
    throw new CliError(EXIT.usage, '--voiceprint cannot be combined with probabilities per frame.');
  }
  if (threshold !== undefined && voiceprint.length === 0) {
    throw new CliError(EXIT.usage, '--threshold needs a --voiceprint to match.');
  }
  const baseDir = callersDir('diarize');
  const recording = openRecording(fileOrUrl, baseDir);
  const voices = openVoices(voiceprint, baseDir);
  const destination = openDestination(output, baseDir, [fileOrUrl, ...voiceprint.map(([, file]) => file)]);
  const result = await withService(async (session) => {
    if (voices.length > 0)
      return identify<DiarizeOutput>(session, recording, voices, { ...request, matching: { threshold } });
    const transcription = transcribe && {
      transcription: true,
      transcriptionConfig: { model: transcriptionModel, language },
    };
    const start = (url: string) =>
      session.client.diarize({ ...request, ...transcription, url }, undefined, session.signal);
    return runJob<DiarizeOutput>(session, { recording, doing: 'diarizing', start, nameOf: optionOfField });
  });
  const text = formatOutput(result.output, format, fileIdOf(fileOrUrl));
  await deliver(text, destination, fetchedAgain(result.address, format));
}

export const command = addSpeakerOptions(
  new Command('diarize')
    .description('Tells who spoke when in a recording.')
    .argument(
      '<file-or-url>',
      'recording (WAV, MP3, FLAC, M4A and others: docs/formats.md), a file or an http(s) address',
    ),
)
  .option('--speech-probability', 'probability of speech per frame (json)')
  .option('--crosstalk-probability', 'probability of overlapping speech per frame (json)')
  .option('--speaker-probability', 'probability of each speaker per frame (json)')
  .option('--transcribe', 'also write what was said; needs a transcription engine (docs/transcription.md)')
  .option('--language <name>', 'language of the recording, a name or an ISO code; detected from the audio if not given')
  .option('--transcription-model <name>', 'asr-tdt-0.6b-v3 (default) or asr-large-v3-turbo')
  .option(
    '--voiceprint <name=file>',
    'a recording or voiceprint of somebody to be found; may be repeated',
    collectVoice,
  )
  .option('--threshold <n>', 'least confidence of a match with a voiceprint, 0 to 100', percent)
  .addHelpText('after', JOB_HELP)
  .action(diarize);
