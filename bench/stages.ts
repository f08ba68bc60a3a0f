import type { FinishedJob, LogEntry } from './bench-service.ts';

/** Times of a job by stage, milliseconds. */
export interface JobTimes {
  readonly audioSeconds: number;
  readonly shards: number;
  /** From created to succeeded. */
  readonly wallMs: number;
  /** From created to the last chunk stored: queue, fetching, decoding, storing, and shards that ran meanwhile. */
  readonly ingestMs: number;
  /** Reading of the stored chunks. */
  readonly chunksMs: number;
  readonly segmentationMs: number;
  /** Only the runs of the embedder's network. */
  readonly embedderMs: number;
  /** Filterbank, pooling, powerset decoding, encoding of the part: the rest of the shards' time. */
  readonly featuresMs: number;
  readonly assembleMs: number;
  /** Wall clock in which more than one step ran; the sum of ingest, shards and assembly counts it more than once. */
  readonly overlapMs: number;
  /** Wall clock in which no step ran: queues, database, storage. */
  readonly restMs: number;
  /** Largest WebAssembly memory of the isolate in any shard, bytes. */
  readonly wasmBytes: number;
}

/**
 * Sums the times that the Worker logs (`job_ingested`, `shard_done`, `job_assembled`). Shards run while the recording
 * is being read, so that steps overlap: wall clock = ingest + stages of the shards + assembly − overlap + rest.
 *
 * @throws Error if a log line is missing
 */
export function jobTimes({ log, wallMs, createdAtMs }: Pick<FinishedJob, 'log' | 'wallMs' | 'createdAtMs'>): JobTimes {
  const ingested = log.find(({ event }) => event === 'job_ingested');
  const assembled = log.find(({ event }) => event === 'job_assembled');
  const shards = log.filter(({ event }) => event === 'shard_done');
  if (!ingested || !assembled || shards.length !== ingested.shards) {
    throw new Error(`the log of the job is not whole: ${log.map(({ event }) => event).join(', ')}`);
  }
  const sum = (field: string): number => shards.reduce((total, entry) => total + numberIn(entry, field), 0);
  const chunksMs = sum('decodeMs');
  const segmentationMs = sum('segmentationMs');
  const embedderMs = sum('embeddingMs');
  const shardMs = sum('totalMs');
  const assembleMs = numberIn(assembled, 'totalMs');
  const ingestMs = Math.min(wallMs, ingested.atMs - createdAtMs);
  const endMs = createdAtMs + wallMs;
  const runs = [...shards, assembled].map((entry): Span => [spanStart(entry), Math.min(entry.atMs, endMs)]);
  const busyMs = coveredMs([[createdAtMs, createdAtMs + ingestMs], ...runs]);
  const stepsMs = ingestMs + shardMs + assembleMs;
  return {
    audioSeconds: sum('audioSeconds'),
    shards: shards.length,
    wallMs,
    ingestMs,
    chunksMs,
    segmentationMs,
    embedderMs,
    featuresMs: shardMs - chunksMs - segmentationMs - embedderMs,
    assembleMs,
    overlapMs: stepsMs - busyMs,
    restMs: wallMs - busyMs,
    wasmBytes: Math.max(...shards.map((entry) => numberIn(entry, 'wasmBytes'))),
  };
}

/** From and to, milliseconds of one clock. */
type Span = readonly [from: number, to: number];

/** Start of a step that logged its duration at its end. */
export const spanStart = (entry: LogEntry): number => entry.atMs - numberIn(entry, 'totalMs');

/** Length of the union of the spans. */
function coveredMs(spans: readonly Span[]): number {
  let covered = 0;
  let reached = Number.NEGATIVE_INFINITY;
  for (const [from, to] of [...spans].sort(([one], [other]) => one - other)) {
    covered += Math.max(0, to - Math.max(from, reached));
    reached = Math.max(reached, to);
  }
  return covered;
}

function numberIn(entry: LogEntry, field: string): number {
  const value = entry[field];
  if (typeof value !== 'number') throw new Error(`the log line ${entry.event} has no number ${field}`);
  return value;
}
