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

/** Tag in the names of chunks and parts: version of the service, models, and number of the file that was read. */
export const tagOf = (ports: Pick<JobPorts, 'work'>, { generation }: Pick<IngestState, 'generation'>): string =>
  `${ports.work}.${generation}`;

/** Progress of a job's ingest; undefined if this version has not begun it. */
export async function findIngest(
  ports: Pick<JobPorts, 'objects' | 'work'>,
  jobId: string,
): Promise<StoredIngest | undefined> {
  const object = await ports.objects.getTagged(ingestKey(jobId, ports.work));
  return object && { state: JSON.parse(new TextDecoder().decode(object.bytes)) as IngestState, etag: object.etag };
}

/** As `findIngest`. @throws JobGone if there is no state: the job has ended and its working data was removed */
export async function readIngest(ports: Pick<JobPorts, 'objects' | 'work'>, jobId: string): Promise<IngestState> {
  const stored = await findIngest(ports, jobId);
  if (!stored) throw new JobGone(jobId);
  return stored.state;
}

/** @throws JobGone if the recording is not read completely: its working data was removed */
export async function readRecording(
  ports: Pick<JobPorts, 'objects' | 'work'>,
  jobId: string,
): Promise<{ readonly recording: IngestedRecording; readonly tag: string }> {
  const state = await readIngest(ports, jobId);
  if (!state.recording) throw new JobGone(jobId);
  return { recording: state.recording, tag: tagOf(ports, state) };
}

/**
 * Replaces the state that was read with this etag.
 *
 * @throws IngestOvertaken if another run of the step has replaced it meanwhile
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

/** Thrown if another run of the step reads the same recording and continues. */
export class IngestOvertaken extends Error {
  override readonly name = 'IngestOvertaken';
  constructor(jobId: string) {
    super(`the recording of job ${jobId} is read by another run`);
  }
}

/** Audio of one shard; a multiple of the embedder's stretch, so that shards never change a result. */
export const SHARD_SECONDS = 300;
export const SHARD_SAMPLES = SHARD_SECONDS * SAMPLE_RATE_HZ;
/** Maximum by which a window or stretch that starts in a shard may end after it. */
export const OVERRUN_SAMPLES = 10 * SAMPLE_RATE_HZ;

/** Number of shards of a recording, which cover it without overlap. */
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
 * @param recording undefined while it is being read; then it has no separate channels
 */
export function shardPosition(
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
