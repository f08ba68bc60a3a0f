import type { FinishedJob, LogEntry } from './bench-service.ts';

/** Where the time of a job went, milliseconds. */
export interface JobTimes {
  readonly audioSeconds: number;
  readonly shards: number;
  /** From created to succeeded. */
  readonly wallMs: number;
  readonly decodeMs: number;
  readonly segmentationMs: number;
  /** The embedder's network runs alone. */
  readonly embedderMs: number;
  /** Filterbank, pooling, powerset decoding, encoding of the part: what the shards' other stages do not claim. */
  readonly featuresMs: number;
  readonly assembleMs: number;
  /** Probing the source, queues, database, storage. */
  readonly restMs: number;
  /** Largest WebAssembly memory of the isolate that a shard saw, bytes. */
  readonly wasmBytes: number;
}

/**
 * Adds up the stage times that the Worker logs (`shard_done`, `job_assembled`).
 *
 * @throws Error when a line is missing: the job was not measured whole
 */
export function jobTimes({ log, wallMs }: Pick<FinishedJob, 'log' | 'wallMs'>): JobTimes {
  const planned = log.find(({ event }) => event === 'job_planned');
  const assembled = log.find(({ event }) => event === 'job_assembled');
  const shards = log.filter(({ event }) => event === 'shard_done');
  if (!planned || !assembled || shards.length !== planned.shards) {
    throw new Error(`the log of the job is not whole: ${log.map(({ event }) => event).join(', ')}`);
  }
  const sum = (field: string): number => shards.reduce((total, entry) => total + numberIn(entry, field), 0);
  const decodeMs = sum('decodeMs');
  const segmentationMs = sum('segmentationMs');
  const embedderMs = sum('embeddingMs');
  const shardMs = sum('totalMs');
  const assembleMs = numberIn(assembled, 'totalMs');
  return {
    audioSeconds: sum('audioSeconds'),
    shards: shards.length,
    wallMs,
    decodeMs,
    segmentationMs,
    embedderMs,
    featuresMs: shardMs - decodeMs - segmentationMs - embedderMs,
    assembleMs,
    restMs: wallMs - shardMs - assembleMs,
    wasmBytes: Math.max(...shards.map((entry) => numberIn(entry, 'wasmBytes'))),
  };
}

function numberIn(entry: LogEntry, field: string): number {
  const value = entry[field];
  if (typeof value !== 'number') throw new Error(`the log line ${entry.event} has no number ${field}`);
  return value;
}
