import { writeFileSync } from 'node:fs';
import { RollcallClient } from '../sdk/client.ts';
import type { ClientError, ErrorOutput, JobCreated, JobResult, Outcome } from '../sdk/types.ts';
import { Progress } from './progress.ts';
import { type Recording, uploadRecording } from './recording.ts';
import { CliError, EXIT, INTERRUPTED, note, onInterrupt } from './run.ts';
import { openTarget } from './target.ts';

/** What a command does with a service: calls, with a progress bar, until Ctrl-C. */
export interface Session {
  readonly client: RollcallClient;
  readonly progress: Progress;
  readonly signal: AbortSignal;
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
  const target = await openTarget(interrupt.signal, use.finishesAfterInterrupt);
  const progress = new Progress();
  const onRateLimit = (waitSeconds: number) => note(`rate limit reached, going on in ${waitSeconds} s`);
  let result: { readonly value: T } | undefined;
  try {
    const session = {
      client: new RollcallClient({ url: target.url, key: target.key, onRateLimit }),
      progress,
      signal: interrupt.signal,
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

/**
 * Runs a job on a recording, which is uploaded first where it is a file.
 *
 * @param doing what the progress bar says
 */
export async function runJob(
  { client, progress, signal }: Session,
  recording: Recording,
  doing: string,
  start: (url: string) => Promise<Outcome<JobCreated>>,
): Promise<JobResult> {
  const url = recording.kind === 'url' ? recording.url : await upload(client, recording, progress);
  const { jobId, warning } = must(await start(url));
  if (warning) note(`warning: ${warning}`);
  progress.begin(doing, 1);
  return must(await client.wait(jobId, { signal, onUpdate: (job) => progress.update(job.progress ?? 0) }));
}

async function upload(
  client: RollcallClient,
  recording: Recording & { kind: 'file' },
  progress: Progress,
): Promise<string> {
  // A bad key is found out before a large file is sent.
  must(await client.test());
  progress.begin('uploading', recording.sizeBytes);
  return must(await uploadRecording(client, recording, (sentBytes) => progress.update(sentBytes)));
}

/** What comes of the work, or undefined when Ctrl-C comes first. */
export function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const interrupted = new Promise<undefined>((done) => {
    if (signal.aborted) done(undefined);
    signal.addEventListener('abort', () => done(undefined), { once: true });
  });
  return Promise.race([work, interrupted]);
}

/** The value, or the exit code and message that fit the error. */
export function must<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const { error } = outcome;
  if (error.kind !== 'refused') throw new CliError(EXIT.unreachable, `${error.message}.`);
  throw new CliError(error.status === 400 ? EXIT.usage : EXIT.failed, describeRefusal(error));
}

function describeRefusal({ status, message, requestId, fields }: ClientError & { kind: 'refused' }): string {
  if (fields?.length) return fields.map((fault) => `${fault.field}: ${fault.message}`).join('; ');
  return `the service refused (${status}): ${message}${status >= 500 && requestId ? ` (request ${requestId})` : ''}`;
}

/** The output of a job that succeeded; its warning goes to stderr. */
export function succeeded<T extends { readonly warning?: string }>(job: JobResult): T {
  if (job.status === 'succeeded' && job.output) {
    const output = job.output as unknown as T;
    if (output.warning) note(`warning: ${output.warning}`);
    return output;
  }
  const reason = (job.output as ErrorOutput | undefined)?.error;
  throw new CliError(
    EXIT.failed,
    reason ?? (job.status === 'succeeded' ? 'the output has expired' : `the job ${job.status}`),
  );
}

/** Writes a result to a file, or to the standard output. */
export function deliver(text: string, outputPath: string | undefined): void {
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
export function callersDir(script: string): string {
  const { npm_lifecycle_event: running, INIT_CWD: initial } = process.env;
  return running === script && initial ? initial : process.cwd();
}
