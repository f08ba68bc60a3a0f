import { speakerCountText } from '../format/speaker-count.ts';
import { isTerminal, mayJobContinue, RollcallClient } from '../sdk/client.ts';
import { aborted } from '../sdk/pause.ts';
import type { ClientError, ErrorOutput, JobCreated, JobResult, Outcome, SpeakerCount } from '../sdk/types.ts';
import { curlOf } from './deliver.ts';
import { onInterrupt } from './interrupt.ts';
import { Progress } from './progress.ts';
import { type Recording, uploadRecording } from './recording.ts';
import { CliError, EXIT, INTERRUPTED, note } from './run.ts';
import { openTarget } from './target.ts';

/** The use of a service by a command. */
export interface Session {
  readonly client: RollcallClient;
  readonly progress: Progress;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Whether the service keeps the results of its jobs for hours. */
  readonly keepsResults: boolean;
}

export interface ServiceUse {
  /** Whether the work handles the signal itself and has a result even after Ctrl-C. */
  readonly finishesAfterInterrupt?: boolean;
}

/**
 * Opens a service for a command, and closes it after the work. Exits the process after Ctrl-C, because an upload may
 * still keep a connection open.
 */
export async function withService<T>(work: (session: Session) => Promise<T>, use: ServiceUse = {}): Promise<T> {
  const interrupt = new AbortController();
  onInterrupt(() => interrupt.abort());
  const target = await openTarget(interrupt.signal);
  const progress = new Progress();
  const onRateLimit = (waitSeconds: number, why: string) =>
    note(`the service says: ${why} Trying again in ${waitSeconds} s …`);
  let result: { readonly value: T } | undefined;
  try {
    const session = {
      client: new RollcallClient({ url: target.url, key: target.key, onRateLimit }),
      progress,
      signal: interrupt.signal,
      keepsResults: target.keepsResults,
    };
    const working = work(session).then((value) => ({ value }));
    result = use.finishesAfterInterrupt ? await working : await untilInterrupted(working, interrupt.signal);
  } finally {
    progress.end();
    await target.close();
  }
  if (!result) process.exit(INTERRUPTED);
  return result.value;
}

/** A job to run on a recording. */
export interface Task {
  readonly recording: Recording;
  /** Text of the progress bar. */
  readonly doing: string;
  /** Prefix of errors and warnings; by default the name of the file. */
  readonly about?: string;
  readonly start: (url: string) => Promise<Outcome<JobCreated>>;
  /** Maps a field of the request to the option that set it. */
  readonly nameOf?: (field: string) => string;
}

export interface JobOutput<T> {
  readonly output: T;
  /** Address of the output; undefined if the service ends with the command. */
  readonly address?: string;
}

/**
 * Uploads the recording if it is a file, and runs a job to its end. Warnings go to stderr.
 *
 * @throws CliError for a job that does not succeed
 */
export async function runJob<T extends { readonly warning?: string; readonly speakerCount?: SpeakerCount }>(
  session: Session,
  task: Task,
): Promise<JobOutput<T>> {
  const { client, progress, signal } = session;
  const { recording, doing, start, nameOf } = task;
  const url = recording.kind === 'url' ? recording.url : await upload(session, recording);
  signal.throwIfAborted();
  const { jobId, warning } = must(await start(url), nameOf);
  const about = task.about ?? (recording.kind === 'file' ? recording.name : undefined);
  const warn = (text: string) => note(`warning: ${labelled(about, text)}`);
  if (warning) warn(warning);
  progress.begin(doing, 1);
  const ended = await client.wait(jobId, { signal, onUpdate: (job) => progress.update(job.progress ?? 0) });
  if (signal.aborted) {
    await abandon(session, jobId);
    signal.throwIfAborted();
  }
  const address = session.keepsResults ? client.outputUrl(jobId) : undefined;
  if (!ended.ok && mayJobContinue(ended.error) && address !== undefined) {
    const { exitCode, message } = refusalOf(ended.error, nameOf);
    throw new CliError(exitCode, `${message} The job ${jobId} may continue; its result: ${curlOf(address)}`);
  }
  const output = succeeded<T>(must(ended), about);
  if (output.warning) warn(output.warning);
  if (output.speakerCount) note(labelled(about, speakerCountText(output.speakerCount)));
  return { output, ...(address !== undefined && { address }) };
}

async function upload({ client, progress, signal }: Session, recording: Recording & { kind: 'file' }): Promise<string> {
  // Reports a wrong key before it sends a large file.
  must(await client.test());
  progress.begin('uploading', recording.sizeBytes);
  const uploaded = await uploadRecording(client, recording, (sentBytes) => progress.update(sentBytes), signal);
  signal.throwIfAborted();
  return must(uploaded);
}

/** Cancels the job of an interrupted command, which would otherwise be billed. */
async function abandon({ client, progress }: Session, jobId: string): Promise<void> {
  const job = await client.cancel(jobId);
  progress.end();
  if (!job.ok) note(`The job ${jobId} could not be canceled and continues: ${refusalOf(job.error).message}`);
  else if (job.value.status === 'canceled' || !isTerminal(job.value.status)) note(`The job ${jobId} is canceled.`);
}

/** Longest time for interrupted work to end an upload or cancel a job. */
const CLEANUP_MS = 3000;

/** Returns the result of the work. After Ctrl-C gives the work time to clean up and returns undefined. */
export async function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const result = await Promise.race([work, aborted(signal)]);
  if (result === undefined) {
    const timeIsUp = new Promise<'time is up'>((done) => setTimeout(() => done('time is up'), CLEANUP_MS));
    const end = await Promise.race([work.catch(() => undefined), timeIsUp]);
    if (end === 'time is up') note('The service did not answer in time: a job that was started may continue.');
  }
  return result;
}

/**
 * @param nameOf maps a faulty field to the option that set it
 * @throws CliError for an error
 */
export function must<T>(outcome: Outcome<T>, nameOf?: (field: string) => string): T {
  if (outcome.ok) return outcome.value;
  throw refusalOf(outcome.error, nameOf);
}

function refusalOf(error: ClientError, nameOf?: (field: string) => string): CliError {
  if (error.kind !== 'refused') return new CliError(EXIT.unreachable, `${error.message}.`);
  return new CliError(error.status === 400 ? EXIT.usage : EXIT.failed, describeRefusal(error, nameOf));
}

function describeRefusal(
  { status, message, requestId, fields }: ClientError & { kind: 'refused' },
  nameOf: (field: string) => string = (field) => field,
): string {
  if (fields?.length) return fields.map((fault) => `${nameOf(fault.field)}: ${fault.message}`).join('; ');
  return `the service refused (${status}): ${message}${status >= 500 && requestId ? ` (request ${requestId})` : ''}`;
}

function succeeded<T>(job: JobResult, about: string | undefined): T {
  if (job.status === 'succeeded' && job.output) return job.output as T;
  const reason = (job.output as ErrorOutput | undefined)?.error;
  const fallback = job.status === 'succeeded' ? 'the output has expired' : `the job ${job.status}`;
  throw new CliError(EXIT.failed, labelled(about, reason ?? fallback));
}

function labelled(about: string | undefined, text: string): string {
  return about === undefined ? text : `${about}: ${text}`;
}

/** Folder for relative names: that of the caller, although `npm run` changes to the repository. */
export function callersDir(script: string): string {
  const { npm_lifecycle_event: running, INIT_CWD: initial } = process.env;
  return running === script && initial ? initial : process.cwd();
}
