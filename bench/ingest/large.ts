import { BenchService, type LogEntry } from '../bench-service.ts';
import { freePort, HeapProbe } from '../inspector.ts';
import { LEAST_DECODER_BYTES } from '../lengths.ts';
import { watchHeap } from '../memory.ts';
import { table } from '../report.ts';
import { say } from '../shared.ts';
import { jobTimes } from '../stages.ts';
import type { Recording } from './hour.ts';
import { countOf, SETTING, seconds, sinceCreated } from './job.ts';
import { latencyCells, sampleLatency } from './latency.ts';
import { serveOrigin } from './origins.ts';

export interface NamedRecording extends Recording {
  readonly name: string;
}

interface Ingested {
  readonly ingestMs: number;
  readonly log: readonly LogEntry[];
}

/** Recordings that are as large, or as long, as they may be. */
export async function measureLarge(recordings: readonly NamedRecording[], warmUp: string): Promise<string> {
  const columns: string[][] = [];
  for (const recording of recordings) columns.push(await measureOne(recording, warmUp));
  const names = [
    '**created to all chunks stored**',
    'seconds of audio a second',
    'hand-overs of the ingest',
    'copied first',
    'shards done meanwhile',
    '`GET /v1/test` beside it, p50',
    '`GET /v1/test` beside it, p99',
    '`GET /v1/test` beside it, longest',
    '**peak of the isolate, in use** (of 128 MB)',
    'peak of the isolate, garbage included',
  ];
  const rows = names.map((name, row) => [name, ...columns.map((cells) => cells[row])]);
  return `From the creation of a job to its last chunk, ${SETTING}, each in a fresh service that a short job has warmed up; the first
shards are analysed beside it in the same thread. The job is canceled then. Memory in use was watched in a second run,
with a garbage collection before every sample.

${table(['', ...recordings.map(({ name }) => name)], rows)}`;
}

async function measureOne(recording: NamedRecording, warmUp: string): Promise<string[]> {
  const inspectorPort = await freePort();
  const service = await BenchService.start({ inspectorPort });
  const origin = await serveOrigin(recording.path);
  try {
    await service.raiseLimits();
    const { wasmBytes } = jobTimes(await service.diarize(warmUp, { model: SETTING }));
    const probe = await HeapProbe.connect(inspectorPort).catch(() => undefined);
    const ingest = async (): Promise<Ingested> => {
      const jobId = await service.create({ url: origin.url, model: SETTING });
      await service.logged(jobId, 'job_ingested');
      const log = service.logOf(jobId);
      const createdAtMs = Date.parse((await service.cancel(jobId)).createdAt);
      return { ingestMs: sinceCreated({ log, createdAtMs }, 'job_ingested')!, log };
    };
    say(`ingest of ${recording.name}`);
    const stop = sampleLatency(service);
    const { result, peak } = await watchHeap(probe, false, ingest);
    const latencies = latencyCells(await stop());
    say('the same once more, collecting garbage before every sample');
    const again = await watchHeap(probe, true, ingest);
    const shards = [...result.log, ...again.result.log].filter(({ event }) => event === 'shard_done');
    const wasm = Math.max(wasmBytes, ...shards.map((entry) => Number(entry.wasmBytes))) + LEAST_DECODER_BYTES;
    const megabytes = (bytes: number | undefined): string =>
      bytes === undefined ? 'not obtainable here' : `${((bytes + wasm) / 1e6).toFixed(1)} MB`;
    return [
      `**${seconds(result.ingestMs)}**`,
      ((1000 * recording.seconds) / result.ingestMs).toFixed(0),
      String(countOf(result.log, 'ingest_handed_over')),
      countOf(result.log, 'source_copied') > 0 ? 'yes' : 'no',
      String(countOf(result.log, 'shard_done')),
      ...latencies,
      `**${megabytes(again.peak?.bothBytes)}**`,
      megabytes(peak?.bothBytes),
    ];
  } finally {
    await origin.close();
    await service.stop();
  }
}
