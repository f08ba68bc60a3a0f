import { BenchService, type LogEntry } from '../bench-service.ts';
import { LEAST_DECODER_BYTES } from '../lengths.ts';
import { describeCommit, freePort, HeapProbe } from '../machine.ts';
import { watchHeap } from '../memory.ts';
import { table } from '../report.ts';
import { logProgress } from '../shared.ts';
import { SETTINGS, type Setting } from '../speed.ts';
import { jobTimes } from '../stages.ts';
import {
  countOf,
  type EndedJob,
  firstShardBegun,
  firstShardSent,
  latencyCells,
  median,
  runToSuccess,
  SETTING,
  sampleLatency,
  seconds,
  sinceCreated,
} from './job.ts';
import { serveOrigin } from './origins.ts';

const IDLE_MS = 10_000;
const RUNS = 3;

export interface Recording {
  readonly path: string;
  readonly seconds: number;
}

interface Measured {
  readonly setting: Setting;
  readonly job: EndedJob;
  readonly idleMs: readonly number[];
  readonly besideMs: readonly number[];
}

/** Measures a job on a long recording over HTTP, with concurrent requests. */
export async function measureHour(recording: Recording, warmUp: string): Promise<string> {
  const measured: Measured[] = [];
  const service = await BenchService.start();
  try {
    await service.raiseLimits();
    for (const setting of SETTINGS) {
      await service.diarize(warmUp, { model: setting });
      const stopIdle = sampleLatency(service);
      await new Promise((wake) => setTimeout(wake, IDLE_MS));
      const idleMs = await stopIdle();
      logProgress(`${setting} on ${minutes(recording)} beside GET /v1/test`);
      const origin = await serveOrigin(recording.path);
      const stop = sampleLatency(service);
      try {
        const job = await runToSuccess(service, origin, setting);
        measured.push({ setting, job, idleMs, besideMs: await stop() });
      } finally {
        await origin.close();
      }
    }
  } finally {
    await service.stop();
  }
  return renderHour(recording, measured);
}

const minutes = (recording: Recording): string => `${(recording.seconds / 60).toFixed(0)} minutes of MP3`;

function renderHour(recording: Recording, measured: readonly Measured[]): string {
  const row = (name: string, cell: (one: Measured) => string): string[] => [name, ...measured.map(cell)];
  const latencyRows = (name: string, of: (one: Measured) => readonly number[]): string[][] =>
    ['p50', 'p99', 'longest'].map((what, at) =>
      row(`\`GET /v1/test\` ${name}, ${what}`, (one) => latencyCells(of(one))[at]),
    );
  const rows = [
    row('**created to output**', ({ job }) => `**${seconds(job.wallMs)}**`),
    row('created to the message of the first shard', ({ job }) => seconds(firstShardSent(job))),
    row('created to the start of the first shard', ({ job }) => seconds(firstShardBegun(job))),
    row('created to all chunks stored', ({ job }) => seconds(sinceCreated(job, 'job_ingested'))),
    row('hand-overs of the ingest', ({ job }) => String(countOf(job.log, 'ingest_handed_over'))),
    ...latencyRows('beside the job', ({ besideMs }) => besideMs),
    ...latencyRows('of the idle service', ({ idleMs }) => idleMs),
  ];
  return `${minutes(recording)} (44.1 kHz stereo, 128 kbit/s) over HTTP from this machine, in one local workerd that a
short job has warmed up. \`GET /v1/test\` is sent every 200 ms, without waiting for earlier answers. Times within a job
are those at which lines of the Worker's log arrive.

${table(['', ...measured.map(({ setting }) => setting)], rows)}`;
}

/** Runs a job in this checkout and in another one, alternating. @param before root of the other checkout */
export async function compareBefore(recording: Recording, warmUp: string, before: string): Promise<string> {
  const walls = new Map<Setting, { before: number[]; now: number[] }>(
    SETTINGS.map((setting) => [setting, { before: [], now: [] }]),
  );
  const origin = await serveOrigin(recording.path);
  try {
    for (let run = 0; run < RUNS; run++) {
      for (const which of ['before', 'now'] as const) {
        logProgress(`${which}, run ${run + 1} of ${RUNS}`);
        // Older local services copied recordings first; with this variable they read them in place, like deployments.
        const options = which === 'before' ? { root: before, vars: { COPY_SOURCES: '0' } } : {};
        const service = await BenchService.start(options);
        try {
          for (const [setting, times] of walls) {
            await service.diarize(warmUp, { model: setting });
            times[which].push((await runToSuccess(service, origin, setting)).wallMs);
          }
        } finally {
          await service.stop();
        }
      }
    }
  } finally {
    await origin.close();
  }
  const rows = [...walls].map(([setting, times]) => [
    setting,
    seconds(median(times.before)),
    seconds(median(times.now)),
    `**${(median(times.now) / median(times.before)).toFixed(2)}**`,
  ]);
  return `Medians of ${RUNS} runs, alternating with commit ${describeCommit(before)}, each in a fresh service that is
warmed up, without other requests.

${table(['created to output', 'there', 'here', 'here ÷ there'], rows)}`;
}

export interface NamedRecording extends Recording {
  readonly name: string;
}

interface Ingested {
  readonly ingestMs: number;
  readonly log: readonly LogEntry[];
}

/** Measures the ingest of recordings of the maximum size or length. */
export async function measureLarge(recordings: readonly NamedRecording[], warmUp: string): Promise<string> {
  const columns: string[][] = [];
  for (const recording of recordings) columns.push(await measureOne(recording, warmUp));
  const names = [
    '**created to all chunks stored**',
    'seconds of audio a second',
    'hand-overs of the ingest',
    'copied first',
    'shards analysed meanwhile',
    '`GET /v1/test` beside it, p50',
    '`GET /v1/test` beside it, p99',
    '`GET /v1/test` beside it, longest',
    '**peak of the isolate, in use** (of 128 MB)',
    'peak of the isolate, garbage included',
  ];
  const rows = names.map((name, row) => [name, ...columns.map((cells) => cells[row])]);
  return `From the creation of a job to its last chunk, ${SETTING}, each in a fresh service that a short job has warmed
up; the first shards are analysed in the same thread meanwhile. The job is then canceled. Memory in use was sampled in a
second run, with a garbage collection before every sample.

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
    logProgress(`ingest of ${recording.name}`);
    const stop = sampleLatency(service);
    const { result, peak } = await watchHeap(probe, false, ingest);
    const latencies = latencyCells(await stop());
    logProgress('second run, with a garbage collection before every sample');
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
