import { isTerminal, RollcallClient, saysNothing } from '../sdk/client.ts';
import type { ClientError, ErrorOutput, JobCreated, JobResult, Outcome } from '../sdk/types.ts';
import { curlOf } from './deliver.ts';
import { onInterrupt } from './interrupt.ts';
import { Progress } from './progress.ts';
import { type Recording, uploadRecording } from './recording.ts';
import { CliError, EXIT, INTERRUPTED, note } from './run.ts';
import { openTarget } from './target.ts';

/** What a command does with a service: calls, with a progress bar, until Ctrl-C. */
export interface Session {
  readonly client: RollcallClient;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** The service keeps the results of its jobs for hours. */
  readonly lasts: boolean;
}

export interface ServiceUse {
  /** The work watches the signal itself and has a result after Ctrl-C, too. */
  readonly finishesAfterInterrupt?: boolean;
}

/**
 * Opens the service that a command works with, and closes it however the work ends. After Ctrl-C the process exits, since an
 * upload may still hold a connection.
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
      lasts: target.lasts,
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
  /** What the progress bar says. */
  readonly doing: string;
  /** What errors and warnings are about; the name of the file if it is left out. */
  readonly about?: string;
  readonly start: (url: string) => Promise<Outcome<JobCreated>>;
  /** Says what a person wrote that became this field of the request. */
  readonly nameOf?: (field: string) => string;
}

/** What a job has brought. */
export interface JobOutput<T> {
  readonly output: T;
  /** Where it can be read again, on a service that goes on. */
  readonly address?: string;
}

/**
 * Runs a job to its end, after the upload of the recording where it is a file. Its warnings go to stderr.
 *
 * @throws CliError for a job that does not succeed
 */
export async function runJob<T extends { readonly warning?: string }>(
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
  const address = session.lasts ? client.outputUrl(jobId) : undefined;
  if (!ended.ok && saysNothing(ended.error) && address !== undefined) {
    const { exitCode, message } = refusalOf(ended.error, nameOf);
    throw new CliError(exitCode, `${message} The job ${jobId} may go on; its result: ${curlOf(address)}`);
  }
  const output = succeeded<T>(must(ended), about);
  if (output.warning) warn(output.warning);
  return { output, ...(address !== undefined && { address }) };
}

async function upload({ client, progress, signal }: Session, recording: Recording & { kind: 'file' }): Promise<string> {
  // A bad key is found out before a large file is sent.
  must(await client.test());
  progress.begin('uploading', recording.sizeBytes);
  const uploaded = await uploadRecording(client, recording, (sentBytes) => progress.update(sentBytes), signal);
  signal.throwIfAborted();
  return must(uploaded);
}

/** Cancels the job of an interrupted command, which would be billed. */
async function abandon({ client, progress }: Session, jobId: string): Promise<void> {
  const job = await client.cancel(jobId);
  progress.end();
  if (!job.ok) note(`The job ${jobId} could not be canceled and goes on: ${refusalOf(job.error).message}`);
  else if (job.value.status === 'canceled' || !isTerminal(job.value.status)) note(`The job ${jobId} is canceled.`);
}

/** Longest time in which interrupted work may tidy up: end an upload, cancel a job. */
const TIDYING_MS = 3000;

/** What comes of the work, or undefined when Ctrl-C comes first; the work has a moment to tidy up then. */
export async function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const result = await Promise.race([work, aborted(signal)]);
  if (result === undefined) {
    const timeIsUp = new Promise<'time is up'>((done) => setTimeout(() => done('time is up'), TIDYING_MS));
    const end = await Promise.race([work.catch(() => undefined), timeIsUp]);
    if (end === 'time is up') note('The service did not answer in time: what it has begun may go on.');
  }
  return result;
}

/** Settles with the signal. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((done) => {
    if (signal.aborted) done(undefined);
    signal.addEventListener('abort', () => done(undefined), { once: true });
  });
}

/**
 * The value, or the exit code and message that fit the error.
 *
 * @param nameOf what a person knows a faulty field as
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

/** `npm run` changes into the repository; relative names are meant from where it was called. */
export function callersDir(script: string): string {
  const { npm_lifecycle_event: running, INIT_CWD: initial } = process.env;
  return running === script && initial ? initial : process.cwd();
}
