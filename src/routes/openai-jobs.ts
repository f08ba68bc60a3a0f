import { parseIdentifyBody, parseVoiceprintBody } from '../contract/identify.ts';
import type { KnownSpeaker, OpenAiError } from '../contract/openai.ts';
import type { AppServices, CreateJob, JobService, JobView } from '../jobs/app-services.ts';
import { isTerminal } from '../jobs/job-record.ts';
import { type OpenAiErrorStatus, openAiErrorBody } from '../middleware/refusals.ts';

/** Longest wait of a request for its jobs. */
export const MAX_WAIT_MS = 15 * 60_000;

/** Reason why there is no transcript, as an answer to the client. */
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

/** A request's wait for its jobs. */
export interface JobWait {
  readonly jobs: Pick<JobService, 'watch' | 'find'>;
  readonly accountId: string;
  /** End of the wait, in milliseconds since the Unix epoch. */
  readonly until: number;
  /** Whether the client is connected and its key still valid. */
  readonly isOpen: () => boolean | Promise<boolean>;
  /** Called a few times a minute. */
  readonly onHeartbeat?: () => Promise<void>;
}

/**
 * Waits until a job has succeeded.
 *
 * @param param request field of the job's recording
 * @throws TranscriptionFault if the job failed, was canceled or deleted, or takes too long
 */
export async function waitForSuccess(
  { jobs, accountId, until, isOpen, onHeartbeat }: JobWait,
  jobId: string,
  param: string,
): Promise<JobView> {
  const isWaiting = async () => Date.now() < until && (await isOpen());
  for await (const item of jobs.watch(accountId, jobId, -1, isWaiting)) {
    if (item.kind === 'heartbeat') await onHeartbeat?.();
    if (item.kind !== 'status' || !isTerminal(item.job.status)) continue;
    if (item.job.status === 'succeeded') return item.job;
    const { code, message } = item.job.error ?? { code: 'canceled', message: 'The job was canceled.' };
    throw new TranscriptionFault(code === 'internal' ? 500 : 400, message, { code, param });
  }
  if (!(await jobs.find(accountId, jobId)))
    throw new TranscriptionFault(400, 'The job was deleted.', { code: 'deleted' });
  const message = `The transcription is not finished; it continues: see GET /v1/jobs/${jobId}.`;
  throw new TranscriptionFault(504, message, { code: 'timeout' });
}

/** Speakers below this confidence are unknown and are named by letter. */
const MATCH_THRESHOLD = 50;
const REFERENCES = 'known_speaker_references';

/** Jobs of one request. `cancel` ends the unfinished ones when the request fails. */
export class RequestJobs {
  readonly #ids: string[] = [];

  constructor(
    private readonly services: Pick<AppServices, 'jobs'>,
    private readonly accountId: string,
  ) {}

  /** @throws TranscriptionFault if the credit does not suffice for another job */
  async create(spec: Pick<CreateJob, 'kind' | 'request'>): Promise<string> {
    const created = await this.services.jobs.create({ ...spec, accountId: this.accountId } as CreateJob);
    if (!created.ok)
      throw new TranscriptionFault(402, 'The account has not enough credit for all jobs of the request.');
    this.#ids.push(created.value.id);
    return created.value.id;
  }

  async cancel(): Promise<void> {
    await Promise.allSettled(this.#ids.map((id) => this.services.jobs.cancel(this.accountId, id)));
  }
}

/** Starts a voiceprint job for the reference of each known speaker. @returns job ids, in the order of the speakers */
export async function startVoiceprints(jobs: RequestJobs, speakers: readonly KnownSpeaker[]): Promise<string[]> {
  const ids: string[] = [];
  for (const { reference } of speakers) {
    const parsed = parseVoiceprintBody({ url: reference });
    if (!parsed.ok) throw new Error('a reference was not checked');
    ids.push(await jobs.create({ kind: 'voiceprint', request: parsed.value }));
  }
  return ids;
}

/**
 * Finds the known speakers in a recording with an identify job. Its labels equal those of every diarization of the
 * recording with the same model.
 *
 * @param names of the speakers of the voiceprint jobs
 * @returns names by label
 */
export async function identifySpeakers(
  services: Pick<AppServices, 'jobs' | 'voiceprintFault'>,
  requestJobs: RequestJobs,
  waiting: JobWait,
  { url, names, voiceprintIds }: { url: string; names: readonly string[]; voiceprintIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const prints = await Promise.all(
    voiceprintIds.map(async (id, index) => {
      await waitForSuccess(waiting, id, `${REFERENCES}.${index}`);
      const output = await new Response(await services.jobs.openOutput(id)).json<{ voiceprint: string }>();
      return { label: names[index], voiceprint: output.voiceprint };
    }),
  );
  const body = { url, voiceprints: prints, matching: { threshold: MATCH_THRESHOLD } };
  const parsed = parseIdentifyBody(body, services.voiceprintFault);
  if (!parsed.ok) throw new Error('the voiceprints of a request are invalid');
  const id = await requestJobs.create({ kind: 'identify', request: parsed.value });
  await waitForSuccess(waiting, id, 'file');
  const matches = (await services.jobs.findMatches(id)) ?? [];
  return new Map(matches.flatMap(({ speaker, match }) => (match === null ? [] : [[speaker, match]])));
}
