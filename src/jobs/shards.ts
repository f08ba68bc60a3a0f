import { OUTPUT_RATE_HZ } from '../audio/types.ts';

/** Audio of one shard; a multiple of the embedder's stretch, so that shards never change a result. */
export const SHARD_SECONDS = 300;
export const SHARD_SAMPLES = SHARD_SECONDS * OUTPUT_RATE_HZ;
/** A window or stretch that starts in a shard may end this much after it. */
export const OVERRUN_SAMPLES = 10 * OUTPUT_RATE_HZ;

/** Shards of a recording: they cover it without overlap; a short one is a single shard. */
export const shardCountOf = (totalSamples: number): number => Math.ceil(totalSamples / SHARD_SAMPLES);

/** Shards that can be analysed once so many samples are stored, while the end of the recording is not known. */
export const readyShards = (storedSamples: number): number =>
  Math.max(0, Math.floor((storedSamples - OVERRUN_SAMPLES) / SHARD_SAMPLES));

/** A job with at most this many shards is short: its shards have the priority queue. */
export const SHORT_SHARDS = 2;
