import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { BYTES_PER_SAMPLE, CHUNK_SAMPLES, readChunks } from '../src/ingest/chunks.ts';
import { OVERRUN_SAMPLES, SHARD_SAMPLES } from '../src/jobs/ingest-state.ts';
import { BenchService } from './bench-service.ts';
import { processCpuMs } from './machine.ts';
import { type LabelledRecording, tenVoices } from './recordings.ts';
import { table } from './report.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';
import { type JobTimes, jobTimes } from './stages.ts';

/** Date of the prices below. */
export const CPU_DAY = '2026-11-21';

/** List prices of the paid plan beyond the included amounts, USD a million. */
export const USD_PER_MILLION = {
  'CPU milliseconds': 0.02,
  requests: 0.3,
  'queue operations': 0.4,
  'object writes': 4.5,
  'object reads': 0.36,
} as const;

/** Write, read and delete of a message. */
const OPERATIONS_A_MESSAGE = 3;
/** The part of the shard, its chunks, and the state of the ingest when its message is sent. */
const WRITES_A_SHARD = 1 + SHARD_SAMPLES / CHUNK_SAMPLES + 1;
/** The first state and the output; one listing checks for a copy, two delete the work (billed as writes). */
const WRITES_A_JOB = 5;
/** Requests and bytes in which a shard reads its chunks, counted with the service's code. */
const CHUNK_READS = await chunkReads();
/**
 * The state of the ingest, a check for the part, the chunks. An assembly that joins speakers opens the part, reads its
 * embeddings, and reads all of it twice.
 */
const READS_A_SHARD = 1 + 1 + CHUNK_READS.count + 1 + 1 + 2;
/** Reads of the state of the ingest: one by the ingest, two by the assembly. */
const READS_A_JOB = 3;
/** Chunks an hour of audio. */
const CHUNK_BYTES_PER_HOUR = {
  written: 3600 * SAMPLE_RATE_HZ * BYTES_PER_SAMPLE,
  read: (3600 * SAMPLE_RATE_HZ * CHUNK_READS.bytes) / SHARD_SAMPLES,
};

async function chunkReads(): Promise<{ count: number; bytes: number }> {
  const reads = { count: 0, bytes: 0 };
  const read = async (_chunk: number, _offset: number, length: number): Promise<Uint8Array> => {
    reads.count++;
    reads.bytes += length;
    return new Uint8Array(length);
  };
  for await (const _ of readChunks(read, 0, SHARD_SAMPLES + OVERRUN_SAMPLES));
  return reads;
}

/** How objects are counted, in a sentence. */
export const OBJECTS_COUNTED =
  `${WRITES_A_SHARD} writes of objects a shard (its part, ${SHARD_SAMPLES / CHUNK_SAMPLES} chunks, ` +
  `the state of the ingest) and ${WRITES_A_JOB} a job, ` +
  `${READS_A_SHARD} reads a shard (${CHUNK_READS.count} of them of chunks) and ${READS_A_JOB} a job; ` +
  `an hour of audio writes ` +
  `${megabytes(CHUNK_BYTES_PER_HOUR.written)} of chunks and reads ${megabytes(CHUNK_BYTES_PER_HOUR.read)} of them, ` +
  `whose bytes cost nothing`;

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

export interface CostItem {
  readonly name: keyof typeof USD_PER_MILLION;
  /** Number for an hour of audio. */
  readonly perHour: number;
  readonly usdPerHour: number;
}

/** Cost of an hour of a job's audio by item, CPU first. @param cpuMs of the whole job */
export function costItems(
  cpuMs: number,
  { shards, audioSeconds }: Pick<JobTimes, 'shards' | 'audioSeconds'>,
): CostItem[] {
  const messages = shards + 2;
  const counts: Record<keyof typeof USD_PER_MILLION, number> = {
    'CPU milliseconds': cpuMs,
    requests: messages,
    'queue operations': messages * OPERATIONS_A_MESSAGE,
    'object writes': shards * WRITES_A_SHARD + WRITES_A_JOB,
    'object reads': shards * READS_A_SHARD + READS_A_JOB,
  };
  return (Object.keys(counts) as (keyof typeof counts)[]).map((name) => {
    const perHour = counts[name] / (audioSeconds / 3600);
    return { name, perHour, usdPerHour: (perHour * USD_PER_MILLION[name]) / 1e6 };
  });
}

const SECONDS = 3600;

interface Measured {
  readonly setting: Setting;
  readonly times: JobTimes;
  readonly cpuMs: number;
}

/** Cost of an hour of audio by item, from the CPU time of a job of an hour. */
export async function measureCost(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the recording needs `../shared/audio`.';
  const recording = await tenVoices(recordings, SECONDS, 'music');
  if (!recording) return '**Not measured:** the recording needs ffmpeg.';
  const measured: Measured[] = [];
  for (const setting of SETTINGS) {
    logProgress(`cost of an hour with ${setting}`);
    const one = await measureOne(recording.path, setting, recordings[0].path);
    if (!one) return '**Not measured:** this system does not report the CPU time of a process.';
    measured.push(one);
  }
  return render(measured);
}

async function measureOne(path: string, setting: Setting, warmUp: string): Promise<Measured | undefined> {
  const service = await BenchService.start();
  try {
    await service.diarize(warmUp, { model: setting });
    const pid = service.workerdPid();
    const before = processCpuMs(pid);
    const times = jobTimes(await service.diarize(path, { model: setting }));
    const after = processCpuMs(pid);
    return before === undefined || after === undefined ? undefined : { setting, times, cpuMs: after - before };
  } finally {
    await service.stop();
  }
}

function render(measured: readonly Measured[]): string {
  const costs = measured.map(({ times, cpuMs }) => costItems(cpuMs, times));
  const total = costs.map((items) => items.reduce((sum, { usdPerHour }) => sum + usdPerHour, 0));
  const rows = costs[0].map(({ name }, item) => [
    name,
    ...costs.flatMap((items) => [items[item].perHour.toFixed(0), items[item].usdPerHour.toFixed(6)]),
  ]);
  rows.push(['**all**', ...total.flatMap((usd) => ['', `**${usd.toFixed(6)}**`])]);
  const head = ['an hour of audio', ...measured.flatMap(({ setting }) => [setting, 'USD'])];
  const prices = Object.entries(USD_PER_MILLION).map(([name, usd]) => `${name} ${usd}`);
  return `A job on an hour of MP3 (44.1 kHz stereo, 128 kbit/s) in a fresh local service that one short job has warmed
up. CPU is that of the whole workerd process: the Worker, and the local database, buckets and queues, which the platform
would not bill as CPU. The platform's list prices of ${CPU_DAY}, in USD a million: ${prices.join(', ')}.

${table(head, rows)}

Counted: ${OBJECTS_COUNTED}. Storage, database rows and Durable Object requests are not counted, and amounts that the
plan includes are not subtracted.`;
}
