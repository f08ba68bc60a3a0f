import { Command } from 'commander';
import type { DiarizeOptions, DiarizeOutput } from '../sdk/types.ts';
import { optionOfField } from './arguments.ts';
import { openBatch, runBatch } from './batch.ts';
import { callersDir, runJob } from './job.ts';
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

/** Fields that identify jobs do not have. */
const DIARIZE_ONLY = ['speechProbability', 'crosstalkProbability', 'speakerProbability'] as const;

async function diarize(names: readonly string[], options: Options): Promise<void> {
  const {
    json,
    format: _,
    output,
    voiceprint = [],
    threshold,
    transcribe,
    language,
    transcriptionModel,
    ...request
  } = options;
  // Checked before the upload, which may take long.
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
  const voices = openVoices(voiceprint, baseDir);
  const format = json ? 'json' : options.format;
  const reads = voiceprint.map(([, file]) => file);
  const batch = await openBatch(names, { baseDir, format, output, reads });
  await runBatch(batch, format, (session, recording) => {
    if (voices.length > 0) {
      return identify<DiarizeOutput>(session, recording, voices, { ...request, matching: { threshold } });
    }
    const transcription = transcribe && {
      transcription: true,
      transcriptionConfig: { model: transcriptionModel, language },
    };
    const start = (url: string) =>
      session.client.diarize({ ...request, ...transcription, url }, undefined, session.signal);
    return runJob<DiarizeOutput>(session, { recording, doing: 'diarizing', start, nameOf: optionOfField });
  });
}

/** Creates a command with the options that `diarize` and `transcribe` share. */
function commandOf(name: string, description: string): Command {
  return addSpeakerOptions(
    new Command(name)
      .description(description)
      .argument(
        '<files-or-urls...>',
        'recording (WAV, MP3, FLAC, M4A and others: docs/formats.md): ' +
          'a file, a pattern, an http(s) address, or - for stdin',
      ),
  )
    .option('--speech-probability', 'probability of speech per frame (json)')
    .option('--crosstalk-probability', 'probability of overlapping speech per frame (json)')
    .option('--speaker-probability', 'probability of each speaker per frame (json)')
    .option('--language <name>', 'language of the recording, a name or an ISO code; detected if not given')
    .option('--transcription-model <name>', 'asr-tdt-0.6b-v3 (default) or asr-large-v3-turbo')
    .addHelpText('after', JOB_HELP);
}

export const command = commandOf('diarize', 'Finds who spoke when in recordings.')
  .option('--transcribe', 'also transcribe; needs a transcription engine (docs/transcription.md)')
  .option('--voiceprint <name=file>', 'recording or voiceprint of a known person; may be repeated', collectVoice)
  .option('--threshold <n>', 'lowest confidence of a match with a voiceprint, 0 to 100', percent)
  .action(diarize);

export const transcribeCommand = commandOf(
  'transcribe',
  'Writes who said what in recordings; needs a transcription engine (docs/transcription.md).',
).action((names: string[], options: Options) => diarize(names, { ...options, transcribe: true }));
