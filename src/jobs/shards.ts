import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import type { IngestedRecording } from './ports.ts';

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
