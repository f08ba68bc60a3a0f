import { type Command, Option } from 'commander';
import { FORMATS, type Format } from '../format/output.ts';
import type { DiarizeOptions, SpeakerOptions } from '../sdk/types.ts';
import { wholeNumber } from './arguments.ts';
import { CliError, EXIT } from './run.ts';

/** Request options that `diarize` and `identify` share. */
export type RequestOptions = SpeakerOptions & Pick<DiarizeOptions, 'model'>;

export interface ResultOptions {
  readonly format: Format;
  readonly output?: string;
  /** Short for the format `json`. */
  readonly json?: boolean;
}

/** Adds the options of `RequestOptions` and `ResultOptions` to a command. */
export function addSpeakerOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--model <name>', 'precision-2: most accurate; community-1: fastest')
        .choices(['precision-2', 'community-1'])
        .default('precision-2'),
    )
    .option('--num-speakers <n>', 'number of speakers, if known', wholeNumber)
    .option('--min-speakers <n>', 'lower limit of the number of speakers', wholeNumber)
    .option('--max-speakers <n>', 'upper limit of the number of speakers', wholeNumber)
    .addOption(new Option('--format <format>', 'format of the result').choices(FORMATS).default('text'))
    .option('--json', 'the same as --format json')
    .option('--output <file>', 'write the result to this file, not to stdout; a folder for several recordings')
    .option('--exclusive', 'turns without overlap, one speaker at a time')
    .option('--turn-level-confidence', 'confidence of each turn (json)')
    .option('--confidence', 'confidence of each frame (json)');
}

/** Last part of the help of every command that runs jobs. */
export const JOB_HELP =
  '\nUses the first of these services: that of ROLLCALL_URL and ROLLCALL_KEY, that of `rollcall login`, that of\n' +
  '`rollcall serve`, or one that it starts and that keeps running for ROLLCALL_KEEP_SECONDS (600).\n' +
  'Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 the service cannot be reached,\n' +
  '130 after Ctrl-C, 141 the reader has closed stdout.';

/** @throws CliError when counts contradict each other */
export function checkCounts({ numSpeakers, minSpeakers, maxSpeakers }: SpeakerOptions): void {
  const least = numSpeakers ?? minSpeakers ?? 1;
  const most = numSpeakers ?? maxSpeakers ?? Number.POSITIVE_INFINITY;
  if ((minSpeakers ?? 1) > (maxSpeakers ?? Number.POSITIVE_INFINITY)) {
    throw new CliError(EXIT.usage, '--min-speakers is greater than --max-speakers.');
  }
  if (least < (minSpeakers ?? least) || most > (maxSpeakers ?? most)) {
    throw new CliError(EXIT.usage, '--num-speakers contradicts --min-speakers or --max-speakers.');
  }
}
