import { describe, expect, it } from 'vitest';
import type { LogEntry } from './bench-service.ts';
import { jobTimes } from './stages.ts';

const CREATED_AT = 1000;
const shard = (atMs: number, wasmBytes: number): LogEntry => ({
  event: 'shard_done',
  atMs: CREATED_AT + atMs,
  audioSeconds: 300,
  decodeMs: 10,
  segmentationMs: 20,
  embeddingMs: 30,
  totalMs: 65,
  wasmBytes,
});
/** The first shard runs from 35 to 100, the ingest ends at 50, the second shard runs from 105 to 170. */
const log: LogEntry[] = [
  { event: 'job_ingested', atMs: CREATED_AT + 50, shards: 2 },
  shard(100, 5),
  shard(170, 7),
  { event: 'job_assembled', atMs: CREATED_AT + 215, totalMs: 40 },
];
const job = { log, wallMs: 220, createdAtMs: CREATED_AT };

describe('jobTimes', () => {
  it('accounts for the whole wall clock, overlap of steps subtracted', () => {
    const times = jobTimes(job);
    expect(times).toMatchObject({
      audioSeconds: 600,
      ingestMs: 50,
      featuresMs: 10,
      overlapMs: 15,
      restMs: 15,
      wasmBytes: 7,
    });
    const { ingestMs, chunksMs, segmentationMs, embedderMs, featuresMs, assembleMs, overlapMs, restMs } = times;
    const shardMs = chunksMs + segmentationMs + embedderMs + featuresMs;
    expect(ingestMs + shardMs + assembleMs - overlapMs + restMs).toBe(220);
  });

  it('gives no negative rest for a late log line', () => {
    const late = log.map((entry) => (entry.event === 'job_assembled' ? { ...entry, atMs: CREATED_AT + 230 } : entry));
    expect(jobTimes({ ...job, log: late }).restMs).toBeGreaterThanOrEqual(0);
  });

  it('throws for an incomplete log', () => {
    const without = log.filter((_, index) => index !== 2);
    expect(() => jobTimes({ ...job, log: without })).toThrow('not whole');
  });
});
