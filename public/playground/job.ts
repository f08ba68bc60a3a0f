import { isKeyRefused, mayJobContinue, type RollcallClient } from '../../client/sdk/client.ts';
import { randomId } from '../../client/sdk/id.ts';
import type { request } from '../../client/sdk/request.ts';
import type { JobState, Outcome } from '../../client/sdk/types.ts';
import { type Problem, problemOf, problemOfJob } from './problem.ts';
import type { FormRequest, Source } from './request.ts';

/** Longest recording in a `data:` URL. */
const MAX_DATA_BYTES = 8 * 1024 * 1024;

const CHANGED = 'The file was changed or moved after it was chosen. Choose it again.';
const RELOAD_ADVICE = 'The job may continue: reload this page to follow it.';
const otherKeyAdvice = (jobId: string): string =>
  `The job may continue; read its result with another key of the account: GET /v1/jobs/${jobId}.`;
const EXPIRED = 'The result has expired: the service keeps it for 24 hours after the end of the job.';

const POLL_MS = 1000;
/** Time without an answer after which the page reports that the service is slow. */
const SLOW_MS = 4000;
/** Longest time without a connection, for example while a laptop sleeps. */
const PATIENCE_MS = 10 * 60 * 1000;
const LOST = 'Connection lost, retrying …';

/** Shows the state of a job; `fraction` is set only while the job runs. */
export type ShowState = (message: string, fraction?: number) => void;

export interface FollowOptions {
  readonly showState: ShowState;
  /** Cancels the job. */
  readonly signal: AbortSignal;
}

export interface RunOptions extends FollowOptions {
  /** Called with the job's id and the URL of its recording. After that the job no longer needs the page. */
  readonly onCreated: (jobId: string, url: string) => void;
  /** Sends an upload; `fetch` by default. */
  readonly put?: typeof request;
}

export type JobEnd =
  | { readonly ok: true; readonly job: JobState }
  | {
      readonly ok: false;
      readonly problem?: Problem;
      /** The service does not answer, fails, or no longer accepts the key; the job may continue. */
      readonly isLost?: boolean;
    };

type Recording = Exclude<Source, { kind: 'microphone' }>;

/** Sends a recording, starts a job and waits for its end. @returns no problem if the signal aborted it */
export async function runJob(
  client: RollcallClient,
  { source, model, numSpeakers, transcription }: Omit<FormRequest, 'source' | 'key'> & { readonly source: Recording },
  { showState, onCreated, signal, put }: RunOptions,
): Promise<JobEnd> {
  showState(source.kind === 'file' ? 'Sending the file …' : 'Starting …');
  const url = await addressOf(client, source, signal, put);
  if (signal.aborted) return { ok: false };
  if (!url.ok) return { ok: false, problem: 'problem' in url ? url.problem : problemOf(url.error) };
  const options = { url: url.value, model, numSpeakers, transcription, turnLevelConfidence: true };
  const created = await client.diarize(options, undefined, signal);
  // A refused call has not created a job.
  if (!created.ok && signal.aborted && created.error.kind === 'refused') return { ok: false };
  if (!created.ok) return { ok: false, problem: problemOf(created.error) };
  const { jobId } = created.value;
  onCreated(jobId, url.value);
  return followJob(client, jobId, { showState, signal });
}

/** Waits for the end of a job. @returns no problem if the signal aborted it */
export async function followJob(
  client: RollcallClient,
  jobId: string,
  { showState, signal }: FollowOptions,
): Promise<JobEnd> {
  const startSlowTimer = () => setTimeout(() => showState('The service answers slowly, waiting …'), SLOW_MS + POLL_MS);
  let slowTimer = startSlowTimer();
  const waited = await client.wait(jobId, {
    signal,
    pollMs: POLL_MS,
    patienceMs: PATIENCE_MS,
    onUpdate(job) {
      clearTimeout(slowTimer);
      slowTimer = startSlowTimer();
      showState(...stateOf(job));
    },
    onTrouble({ kind, message }) {
      clearTimeout(slowTimer);
      showState(kind === 'unreachable' ? LOST : `${message}, retrying …`);
    },
  });
  clearTimeout(slowTimer);
  if (signal.aborted) return cancel(client, jobId);
  if (!waited.ok && mayJobContinue(waited.error)) {
    const problem = problemOf(waited.error);
    const details = [...problem.details, isKeyRefused(waited.error) ? otherKeyAdvice(jobId) : RELOAD_ADVICE];
    return { ok: false, problem: { ...problem, details }, isLost: true };
  }
  if (!waited.ok) return { ok: false, problem: problemOf(waited.error) };
  const job = waited.value;
  return job.status === 'succeeded' ? resultOf(job) : { ok: false, problem: problemOfJob(job) };
}

/** Returns the result, which may have expired, because a page may sleep for days. */
function resultOf(job: JobState): JobEnd {
  if (job.output) return { ok: true, job };
  return { ok: false, problem: { message: EXPIRED, details: [`Job ${job.jobId}`] } };
}

/** Cancels a job; returns the result of a job that had already succeeded. */
async function cancel(client: RollcallClient, jobId: string): Promise<JobEnd> {
  const canceled = await client.cancel(jobId);
  if (canceled.ok) return canceled.value.status === 'succeeded' ? resultOf(canceled.value) : { ok: false };
  if (canceled.error.kind === 'refused' && canceled.error.status === 404) return { ok: false };
  const problem = problemOf(canceled.error);
  const advice = isKeyRefused(canceled.error) ? otherKeyAdvice(jobId) : RELOAD_ADVICE;
  const details = [...problem.details, `Job ${jobId}`, advice];
  return {
    ok: false,
    problem: { ...problem, message: `The job could not be canceled: ${problem.message}`, details },
    isLost: true,
  };
}

function stateOf({ status, progress, attempt }: JobState): [string, number?] {
  if (status !== 'running') return [status === 'succeeded' ? 'Done.' : 'The job is queued …'];
  if (attempt) return [`Fetching the recording (attempt ${attempt.number} of ${attempt.of}) …`];
  return progress === undefined ? ['Analysing …'] : [`Analysing … ${Math.round(100 * progress)} %`, progress];
}

async function addressOf(
  client: RollcallClient,
  source: Recording,
  signal: AbortSignal,
  put: typeof request | undefined,
): Promise<Outcome<string> | { readonly ok: false; readonly problem: Problem }> {
  if (source.kind === 'address') return { ok: true, value: source.url };
  const { file } = source;
  const stored = await client.upload(`playground/${randomId()}`, file, undefined, signal, put);
  if (stored.ok || stored.error.kind !== 'unreachable' || signal.aborted) return stored;
  if (!(await isReadable(file))) return { ok: false, problem: { message: CHANGED, details: [] } };
  // This page must not call another host: if uploads go to one, a small file is sent in the request.
  if (!stored.error.elsewhere) return stored;
  if (file.size <= MAX_DATA_BYTES) return { ok: true, value: await dataUrl(file) };
  const limit = `${MAX_DATA_BYTES / 1024 ** 2} MiB`;
  const advice = `This page can send only files of up to ${limit}; use an address, or npm run diarize`;
  const message = `${stored.error.message}. Uploads of this service go to another host. ${advice}`;
  return { ok: false, error: { kind: 'unreachable', message } };
}

/** Whether the file can be read. Browsers report a file that was changed after it was chosen as a network fault. */
async function isReadable(file: Blob): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

function dataUrl(file: Blob): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
