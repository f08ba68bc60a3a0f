import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { JobGone } from './dispatch.ts';
import type { JobPorts } from './job-ports.ts';
import type { IngestedRecording, IngestState } from './job-record.ts';
import { ingestKey } from './work-keys.ts';

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
export async function readIngest(ports: Pick<JobPorts, 'objects' | 'work'>, jobId: string): Promise<IngestState> {
  const stored = await findIngest(ports, jobId);
  if (!stored) throw new JobGone(jobId);
  return stored.state;
}

/** @throws JobGone when the recording was not read as a whole: its work was removed */
export async function readRecording(
  ports: Pick<JobPorts, 'objects' | 'work'>,
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

/** Audio of one shard; a multiple of the embedder's stretch, so that shards never change a result. */
export const SHARD_SECONDS = 300;
export const SHARD_SAMPLES = SHARD_SECONDS * SAMPLE_RATE_HZ;
/** A window or stretch that starts in a shard may end this much after it. */
export const OVERRUN_SAMPLES = 10 * SAMPLE_RATE_HZ;

/** Shards of a recording: they cover it without overlap; a short one is a single shard. */
export const shardCountOf = (totalSamples: number): number => Math.ceil(totalSamples / SHARD_SAMPLES);

/** Maximum number of channels that are read separately. */
export const MAX_SEPARATE_CHANNELS = 8;
/** More than the chunks of the longest recording. */
const CHUNKS_PER_CHANNEL = 1000;

/** Number of the first chunk of a channel, from 0. */
export const firstChunkOf = (channel: number): number => channel * CHUNKS_PER_CHANNEL;

/**
 * The channel of a shard, and its number within that channel, both from 0.
 *
 * @param recording undefined while it is being read: shards are analysed so early only without separate channels
 */
export function placeOf(
  shard: number,
  recording: Pick<IngestedRecording, 'shardCount' | 'separateChannels'> | undefined,
): { readonly channel: number; readonly number: number } {
  if (recording?.separateChannels === undefined) return { channel: 0, number: shard };
  const shardsEach = recording.shardCount / recording.separateChannels;
  return { channel: Math.floor(shard / shardsEach), number: shard % shardsEach };
}

/** Number of shards that can be analysed while the end of the recording is not known. */
export const readyShards = (storedSamples: number): number =>
  Math.max(0, Math.floor((storedSamples - OVERRUN_SAMPLES) / SHARD_SAMPLES));

/** A job with at most this many shards is short: its shards have the priority queue. */
export const SHORT_SHARDS = 2;
