import { describe, expect, it } from 'vitest';
import type { LogEntry } from './bench-service.ts';
import { jobTimes } from './stages.ts';

const shard = (wasmBytes: number): LogEntry => ({
  event: 'shard_done',
  audioSeconds: 300,
  decodeMs: 10,
  segmentationMs: 20,
  embeddingMs: 30,
  totalMs: 65,
  wasmBytes,
});
const log: LogEntry[] = [
  { event: 'job_planned', shards: 2 },
  shard(5),
  shard(7),
  { event: 'job_assembled', totalMs: 40 },
];

describe('jobTimes', () => {
  it('accounts for all of the time', () => {
    const times = jobTimes({ log, wallMs: 200 });
    expect(times).toMatchObject({ audioSeconds: 600, featuresMs: 10, restMs: 30, wasmBytes: 7 });
    const { decodeMs, segmentationMs, embedderMs, featuresMs, assembleMs, restMs } = times;
    expect(decodeMs + segmentationMs + embedderMs + featuresMs + assembleMs + restMs).toBe(200);
  });

  it('refuses a log with holes', () => {
    const without = log.filter((_, index) => index !== 2);
    expect(() => jobTimes({ log: without, wallMs: 200 })).toThrow('not whole');
  });
});
