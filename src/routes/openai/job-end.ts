import type { OpenAiError } from '../../contract/openai.ts';
import type { JobService, JobView } from '../../jobs/app-services.ts';
import { isTerminal } from '../../jobs/state.ts';
import { type OpenAiErrorStatus, openAiErrorBody } from '../../middleware/openai-errors.ts';

/** How long a request waits for its jobs. */
export const MAX_WAIT_MS = 15 * 60_000;

/** Why there is no transcript. */
export class TranscriptionFault extends Error {
  readonly body: OpenAiError;

  constructor(
    readonly status: OpenAiErrorStatus,
    message: string,
    details: { readonly code?: string; readonly param?: string } = {},
  ) {
    super(message);
    this.body = openAiErrorBody(status, message, details);
  }
}

/** What a request needs that waits for its jobs. */
export interface Waiting {
  readonly jobs: Pick<JobService, 'watch' | 'find'>;
  readonly accountId: string;
  /** End of the wait, in milliseconds since the Unix epoch. */
  readonly until: number;
  /** Whether somebody waits still, who may. */
  readonly isOpen: () => boolean | Promise<boolean>;
  /** Called a few times a minute. */
  readonly onHeartbeat?: () => Promise<void>;
}

/**
 * Waits until a job has succeeded.
 *
 * @param param the field that its recording came in
 * @throws TranscriptionFault when it failed, was canceled or deleted, or takes too long
 */
export async function whenSucceeded(
  { jobs, accountId, until, isOpen, onHeartbeat }: Waiting,
  jobId: string,
  param: string,
): Promise<JobView> {
  const goesOn = async () => Date.now() < until && (await isOpen());
  for await (const item of jobs.watch(accountId, jobId, -1, goesOn)) {
    if (item.kind === 'heartbeat') await onHeartbeat?.();
    if (item.kind !== 'status' || !isTerminal(item.job.status)) continue;
    if (item.job.status === 'succeeded') return item.job;
    const { code, message } = item.job.error ?? { code: 'canceled', message: 'The job was canceled.' };
    throw new TranscriptionFault(code === 'internal' ? 500 : 400, message, { code, param });
  }
  if (!(await jobs.find(accountId, jobId)))
    throw new TranscriptionFault(400, 'The job was deleted.', { code: 'deleted' });
  const message = `The transcription takes longer than this request may. It goes on: see GET /v1/jobs/${jobId}.`;
  throw new TranscriptionFault(504, message, { code: 'timeout' });
}
