import { ingestKey } from './keys.ts';
import { JobGone } from './lease.ts';
import type { IngestedRecording, IngestState, JobPorts } from './ports.ts';

/** A stored state, and the tag with which it can be replaced. */
export interface StoredIngest {
  readonly state: IngestState;
  readonly etag: string;
}

/** What chunks and parts are named after: the version of the service, the models, and which file was read. */
export const tagOf = (ports: Pick<JobPorts, 'work'>, { generation }: Pick<IngestState, 'generation'>): string =>
  `${ports.work}.${generation}`;

/** How far the reading of a job's recording has come; undefined where this version has not begun it. */
export async function findIngest(
  ports: Pick<JobPorts, 'objects' | 'work'>,
  jobId: string,
): Promise<StoredIngest | undefined> {
  const object = await ports.objects.getTagged(ingestKey(jobId, ports.work));
  return object && { state: JSON.parse(new TextDecoder().decode(object.bytes)) as IngestState, etag: object.etag };
}

/** The same where it must be there. @throws JobGone when it is not: the job has ended and its work was removed */
export async function readIngest(ports: JobPorts, jobId: string): Promise<IngestState> {
  const stored = await findIngest(ports, jobId);
  if (!stored) throw new JobGone(jobId);
  return stored.state;
}

/** @throws JobGone when the recording was not read as a whole: its work was removed */
export async function readRecording(
  ports: JobPorts,
  jobId: string,
): Promise<{ readonly recording: IngestedRecording; readonly tag: string }> {
  const state = await readIngest(ports, jobId);
  if (!state.recording) throw new JobGone(jobId);
  return { recording: state.recording, tag: tagOf(ports, state) };
}

/**
 * Replaces a state that was read.
 *
 * @throws IngestOvertaken where another run of the step has done so meanwhile: it continues
 */
export async function saveIngest(
  ports: Pick<JobPorts, 'objects' | 'work'>,
  jobId: string,
  state: IngestState,
  etag: string | undefined,
): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const saved = await ports.objects.replace(ingestKey(jobId, ports.work), bytes, etag);
  if (saved === undefined) throw new IngestOvertaken(jobId);
  return saved;
}

/** Another run reads the same recording and is ahead. */
export class IngestOvertaken extends Error {
  override readonly name = 'IngestOvertaken';
  constructor(jobId: string) {
    super(`the recording of job ${jobId} is read by another run`);
  }
}
