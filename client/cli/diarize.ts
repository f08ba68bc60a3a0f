import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { FORMATS, type Format, fileIdOf, formatOutput } from '../format/output.ts';
import { RollcallClient } from '../sdk/client.ts';
import type { ClientError, DiarizeOptions, DiarizeOutput, ErrorOutput, JobResult, Outcome } from '../sdk/types.ts';
import { Progress } from './progress.ts';
import { openRecording, type Recording, uploadRecording } from './recording.ts';
import { CliError, EXIT, INTERRUPTED, note, onInterrupt, runCommand } from './run.ts';
import { openTarget } from './target.ts';

interface Options extends Omit<DiarizeOptions, 'url'> {
  readonly format: Format;
  readonly output?: string;
}

async function diarize(fileOrUrl: string, options: Options): Promise<void> {
  const { format, output, ...request } = options;
  checkCounts(request);
  const baseDir = callersDir();
  const recording = openRecording(fileOrUrl, baseDir);

  const interrupt = new AbortController();
  onInterrupt(() => interrupt.abort());

  const target = await openTarget(interrupt.signal);
  const progress = new Progress();
  let job: JobResult | undefined;
  try {
    const client = new RollcallClient(target);
    job = await untilInterrupted(runJob(client, recording, request, progress, interrupt.signal), interrupt.signal);
  } finally {
    progress.end();
    await target.close();
  }
  if (!job) {
    process.exit(INTERRUPTED); // interrupted; an upload may still hold a connection
  }
  deliver(succeeded(job), format, fileIdOf(fileOrUrl), output && resolve(baseDir, output));
}

async function runJob(
  client: RollcallClient,
  recording: Recording,
  request: Omit<DiarizeOptions, 'url'>,
  progress: Progress,
  signal: AbortSignal,
): Promise<JobResult> {
  let url: string;
  if (recording.kind === 'url') {
    url = recording.url;
  } else {
    // A bad key or request is found out before a large file is sent.
    must(await client.test());
    progress.begin('uploading', recording.sizeBytes);
    url = must(await uploadRecording(client, recording, (sentBytes) => progress.update(sentBytes)));
  }
  const { jobId, warning } = must(await client.diarize({ ...request, url }));
  if (warning) note(`warning: ${warning}`);
  progress.begin('diarizing', 1);
  return must(await client.wait(jobId, { signal, onUpdate: (job) => progress.update(job.progress ?? 0) }));
}

function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const interrupted = new Promise<undefined>((done) => {
    if (signal.aborted) done(undefined);
    signal.addEventListener('abort', () => done(undefined), { once: true });
  });
  return Promise.race([work, interrupted]);
}

/** The value, or the exit code and message that fit the error. */
function must<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const { error } = outcome;
  if (error.kind !== 'refused') throw new CliError(EXIT.unreachable, `${error.message}.`);
  throw new CliError(error.status === 400 ? EXIT.usage : EXIT.failed, describeRefusal(error));
}

function describeRefusal({ status, message, requestId, fields }: ClientError & { kind: 'refused' }): string {
  if (fields?.length) return fields.map((fault) => `${fault.field}: ${fault.message}`).join('; ');
  return `the service refused (${status}): ${message}${status >= 500 && requestId ? ` (request ${requestId})` : ''}`;
}

function succeeded(job: JobResult): DiarizeOutput {
  if (job.status === 'succeeded' && job.output) return job.output as DiarizeOutput;
  const reason = (job.output as ErrorOutput | undefined)?.error;
  throw new CliError(
    EXIT.failed,
    reason ?? (job.status === 'succeeded' ? 'the output has expired' : `the job ${job.status}`),
  );
}

function deliver(result: DiarizeOutput, format: Format, fileId: string, outputPath: string | undefined): void {
  if (result.warning) note(`warning: ${result.warning}`);
  const text = formatOutput(result, format, fileId);
  if (outputPath === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(outputPath, text);
  } catch (error) {
    throw new CliError(EXIT.failed, `the result could not be written: ${(error as Error).message}`);
  }
}

/** `npm run` changes into the repository; relative names are meant from where it was called. */
function callersDir(): string {
  const { npm_lifecycle_event: script, INIT_CWD: initial } = process.env;
  return script === 'diarize' && initial ? initial : process.cwd();
}

function checkCounts({ numSpeakers, minSpeakers, maxSpeakers }: Omit<DiarizeOptions, 'url'>): void {
  const least = numSpeakers ?? minSpeakers ?? 1;
  const most = numSpeakers ?? maxSpeakers ?? Number.POSITIVE_INFINITY;
  if ((minSpeakers ?? 1) > (maxSpeakers ?? Number.POSITIVE_INFINITY)) {
    throw new CliError(EXIT.usage, '--min-speakers is greater than --max-speakers.');
  }
  if (least < (minSpeakers ?? least) || most > (maxSpeakers ?? most)) {
    throw new CliError(EXIT.usage, '--num-speakers contradicts --min-speakers or --max-speakers.');
  }
}

function speakerCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1.');
  return Number(text);
}

const command = new Command('diarize')
  .description('Tells who spoke when in a recording.')
  .argument('<file-or-url>', 'recording: WAV, MP3 or FLAC, a file or an http(s) address')
  .addOption(
    new Option('--model <name>', 'precision-2: most accurate; community-1: fastest')
      .choices(['precision-2', 'community-1'])
      .default('precision-2'),
  )
  .option('--num-speakers <n>', 'how many speakers there are, if that is known', speakerCount)
  .option('--min-speakers <n>', 'at least so many', speakerCount)
  .option('--max-speakers <n>', 'at most so many', speakerCount)
  .addOption(new Option('--format <format>', 'form of the result').choices(FORMATS).default('text'))
  .option('--output <file>', 'write the result there instead of to the standard output')
  .option('--exclusive', 'turns without overlap: one speaker at a time')
  .option('--turn-level-confidence', 'confidence of each turn (json)')
  .option('--confidence', 'confidence of each frame (json)')
  .option('--speech-probability', 'probability of speech per frame (json)')
  .option('--crosstalk-probability', 'probability of overlapping speech per frame (json)')
  .option('--speaker-probability', 'probability of each speaker per frame (json)')
  .option('--transcribe', 'also write what was said, where the service has an engine for that')
  .addHelpText(
    'after',
    '\nUses the service of ROLLCALL_URL and ROLLCALL_KEY, else the one that `npm start` runs, else starts one.\n' +
      'Exit code: 0 done, 1 the job failed, 2 wrong usage, 3 the service cannot be reached.',
  )
  .action((fileOrUrl: string, { transcribe, ...options }: Options & { transcribe?: boolean }) =>
    diarize(fileOrUrl, { ...options, transcription: transcribe }),
  );
await runCommand(command);
