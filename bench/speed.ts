import { decodeFile } from '../client/audio/file.ts';
import { nodeAudio } from '../client/audio/ports.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { settingsOf, withTuning } from '../src/diarization/parameters.ts';
import { BenchService } from './bench-service.ts';
import { processCpuMs } from './machine.ts';
import { packOfService, sherpaModels } from './pipeline.ts';
import { type LabelledRecording, longMp3 } from './recordings.ts';
import { table } from './report.ts';
import { logProgress } from './shared.ts';
import { SherpaDiarizer, SherpaWasmDiarizer, sherpaVersion, sherpaWasmVersion } from './sherpa.ts';
import { type JobTimes, jobTimes } from './stages.ts';

const LONG_SECONDS = 1800;
export const SETTINGS = ['precision-2', 'community-1'] as const;
export type Setting = (typeof SETTINGS)[number];

/** Threshold of sherpa-onnx; its speed hardly depends on it. */
const SHERPA_THRESHOLD = 0.95;

/**
 * Speed of the real service on a long MP3, by stage, and of sherpa-onnx (segmentation-3.0, CAM++) on the same audio in
 * the same run.
 */
export async function measureSpeed(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const path = recordings && longMp3(recordings, LONG_SECONDS);
  if (!path) return '**Not measured:** the long recording needs `../shared/audio` and ffmpeg.';
  const times = new Map<Setting, MeasuredJob>();
  const service = await BenchService.start();
  try {
    logProgress('warming the service up');
    await service.diarize(recordings[0].path, { model: 'precision-2' });
    for (const model of SETTINGS) {
      logProgress(`${model} in workerd on ${LONG_SECONDS / 60} minutes of MP3`);
      const before = serviceCpuMs(service);
      const job = jobTimes(await service.diarize(path, { model }));
      times.set(model, { ...job, cpuMs: serviceCpuMs(service) - before });
    }
  } finally {
    await service.stop();
  }
  const sherpa = await measureSherpa(path);
  return render(times, sherpa);
}

/** A job with the CPU time of the whole service, milliseconds. */
interface MeasuredJob extends JobTimes {
  readonly cpuMs: number;
}

/** @throws Error if this system does not report the CPU time of a process */
function serviceCpuMs(service: BenchService): number {
  const cpuMs = processCpuMs(service.workerdPid());
  if (cpuMs === undefined) throw new Error('this system does not report the CPU time of a process');
  return cpuMs;
}

/** Audio for sherpa-onnx's WebAssembly build, whose speed does not depend on the length. */
const WASM_SECONDS = 30;

interface SherpaSpeed {
  /** × real time of the WebAssembly build. */
  readonly wasmRealTime: number;
  readonly audioSeconds: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly decodeSeconds: number;
}

async function measureSherpa(path: string): Promise<SherpaSpeed | undefined> {
  const models = sherpaModels();
  if (!models) return undefined;
  const decodeFrom = performance.now();
  const samples = await decodeFile(path, nodeAudio());
  const decodeSeconds = (performance.now() - decodeFrom) / 1000;
  logProgress('sherpa-onnx on the same recording');
  const engine = new SherpaDiarizer(models.segmentation, models.embedder, SHERPA_THRESHOLD);
  engine.process(samples.subarray(0, 20 * SAMPLE_RATE_HZ));
  const from = performance.now();
  const cpuFrom = process.cpuUsage();
  engine.process(samples);
  const seconds = (performance.now() - from) / 1000;
  const { user, system } = process.cpuUsage(cpuFrom);
  const cpuSeconds = (user + system) / 1e6;
  logProgress('WebAssembly build of sherpa-onnx on the beginning');
  const beginning = samples.subarray(0, WASM_SECONDS * SAMPLE_RATE_HZ);
  const wasmRealTime = wasmSpeed(models, beginning);
  return { wasmRealTime, audioSeconds: samples.length / SAMPLE_RATE_HZ, seconds, cpuSeconds, decodeSeconds };
}

/** × real time of the WebAssembly build. @param samples 16 kHz mono */
function wasmSpeed(models: NonNullable<ReturnType<typeof sherpaModels>>, samples: Float32Array): number {
  const engine = new SherpaWasmDiarizer(models.segmentation, models.embedder, SHERPA_THRESHOLD);
  try {
    const from = performance.now();
    engine.process(samples);
    return samples.length / SAMPLE_RATE_HZ / ((performance.now() - from) / 1000);
  } finally {
    engine.close();
  }
}

function render(times: ReadonlyMap<Setting, MeasuredJob>, sherpa: SherpaSpeed | undefined): string {
  const columns = [...times.values()];
  const row = (name: string, cell: (one: MeasuredJob) => string): string[] => [name, ...columns.map(cell)];
  const seconds = (ms: number, one: MeasuredJob): string =>
    `${(ms / 1000).toFixed(1)} s (${((100 * ms) / one.wallMs).toFixed(0)} %)`;
  const networksMs = (one: MeasuredJob): number => one.segmentationMs + one.embedderMs;
  const steps = [...times.keys()].map((setting) => `${stepSeconds(setting)} s`);
  const rows = [
    ['step of the 10 s windows', ...steps],
    row('whole job, created to succeeded', (one) => `${(one.wallMs / 1000).toFixed(1)} s`),
    row('**× real time**', (one) => `**${((1000 * one.audioSeconds) / one.wallMs).toFixed(1)}**`),
    row('ingest: fetch, decode, resample, store chunks; shards run meanwhile', (one) => seconds(one.ingestMs, one)),
    row('reading of the chunks', (one) => seconds(one.chunksMs, one)),
    row('segmentation network', (one) => seconds(one.segmentationMs, one)),
    row('embedding: network (trunk, head)', (one) => seconds(one.embedderMs, one)),
    row('filterbank, mel powers, pooling; powerset, part', (one) => seconds(one.featuresMs, one)),
    row('clustering, counts, turns, output', (one) => seconds(one.assembleMs, one)),
    row('ingest and shards at the same time, counted twice above', (one) => `−${seconds(one.overlapMs, one)}`),
    row('queues, database, storage', (one) => seconds(one.restMs, one)),
    row('shards', (one) => String(one.shards)),
    row('**CPU time of the whole service**', (one) => `**${(one.cpuMs / 1000).toFixed(1)} s**`),
    row('as a ratio to the time in the networks', (one) => (one.cpuMs / networksMs(one)).toFixed(2)),
  ];
  if (sherpa) {
    rows.push(
      row(
        "sherpa-onnx's CPU time as a ratio to it",
        (one) => `**${((1000 * sherpa.cpuSeconds) / one.cpuMs).toFixed(2)}**`,
      ),
      row('speed as a ratio to sherpa-onnx', (one) => ((1000 * sherpa.seconds) / one.wallMs).toFixed(2)),
      row("speed as a ratio to sherpa-onnx's WebAssembly build, whole job", (one) =>
        ((1000 * one.audioSeconds) / one.wallMs / sherpa.wasmRealTime).toFixed(1),
      ),
    );
  }
  const labels = [...times.keys()].map((setting) => packOfService(setting).label);
  return `${LONG_SECONDS / 60} minutes of MP3 (44.1 kHz stereo, 128 kbit/s), fetched by the real service (workerd, one
isolate, one thread) over HTTP from this machine; weights ${[...labels, packOfService().pack.embedding.id].join(', ')};
warmed up with one short job.

${table(['', ...times.keys()], rows)}

${renderSherpa(sherpa)}`;
}

/** Step between two windows of the pack in use, tuning included. */
function stepSeconds(setting: Setting): number {
  const { segmentation, embedding } = packOfService(setting).pack;
  const tuned = [segmentation.tuned, embedding.tuned].reduce(withTuning, settingsOf(setting));
  return tuned.windows.stepSamples / SAMPLE_RATE_HZ;
}

function renderSherpa(sherpa: SherpaSpeed | undefined): string {
  if (!sherpa) return '**sherpa-onnx was not measured:** segmentation-3.0 in 8 bits or CAM++ is missing.';
  const speed = (sherpa.audioSeconds / sherpa.seconds).toFixed(1);
  return `sherpa-onnx-node ${sherpaVersion()} (native ONNX Runtime, one thread, segmentation-3.0 in 8 bits,
CAM++ in floating point, same run): ${sherpa.seconds.toFixed(1)} s,
${sherpa.cpuSeconds.toFixed(1)} s of CPU, ${speed} × real time.
Its input is decoded (16 kHz mono, in memory); decoding with this service's WebAssembly decoder in Node took
${sherpa.decodeSeconds.toFixed(1)} s, which its time excludes. The step of its windows is 1 s; the table has the
service's. It runs native AVX code, workerd 128-bit WebAssembly SIMD; a ratio below 1 means that the service is slower.
Its WebAssembly build (npm package sherpa-onnx ${sherpaWasmVersion()}, Node, one thread, the same models)
ran at ${sherpa.wasmRealTime.toFixed(1)} × real time on the first ${WASM_SECONDS} s.`;
}
