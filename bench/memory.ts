import { readFileSync } from 'node:fs';
import { decodeFile } from '../client/audio/file.ts';
import { decoderBytes, nodeAudio } from '../client/audio/ports.ts';
import { BenchService } from './bench-service.ts';
import { freePort, HeapProbe, type HeapUsage } from './machine.ts';
import { type LabelledRecording, longMp3 } from './recordings.ts';
import { table } from './report.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';
import { jobTimes } from './stages.ts';

const LONG_SECONDS = 1800;
const SAMPLE_EVERY_MS = 100;
/** Memory of an isolate in production, bytes. */
const PLATFORM_LIMIT_BYTES = 128e6;

interface Peak {
  readonly wasmBytes: number;
  /** Undefined if the inspector does not answer. */
  readonly heap: HeapPeak | undefined;
  /** Memory in use: with a garbage collection before every sample. */
  readonly live: HeapPeak | undefined;
  readonly rssBeforeBytes: number | undefined;
  readonly rssPeakBytes: number | undefined;
}

/** Largest values of the samples. */
interface HeapPeak extends HeapUsage {
  /** Largest sum of both in one sample. */
  readonly bothBytes: number;
  readonly samples: number;
}

/** Peak memory of the isolate that runs a long job, in a fresh service for each setting. */
export async function measureMemory(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const path = recordings && longMp3(recordings, LONG_SECONDS);
  if (!path) return '**Not measured:** the long recording needs `../shared/audio` and ffmpeg.';
  await decodeFile(path, nodeAudio());
  const peaks = new Map<string, Peak>();
  for (const model of SETTINGS) peaks.set(model, await measureOne(path, model));
  return render(peaks, decoderBytes());
}

async function measureOne(path: string, model: Setting): Promise<Peak> {
  const inspectorPort = await freePort();
  const service = await BenchService.start({ inspectorPort });
  try {
    const pid = service.workerdPid();
    const probe = await HeapProbe.connect(inspectorPort).catch(() => undefined);
    const rssBeforeBytes = pid && readStatus(pid, 'VmRSS');
    const run = () => service.diarize(path, { model, confidence: true, exclusive: true, turnLevelConfidence: true });
    logProgress(`memory of ${model} on ${LONG_SECONDS / 60} minutes of MP3`);
    const { result: job, peak: heap } = await watchHeap(probe, false, run);
    const rssPeakBytes = pid && readStatus(pid, 'VmHWM');
    logProgress('the same once more, collecting garbage before every sample');
    const { result: again, peak: live } = await watchHeap(probe, true, run);
    const wasmBytes = Math.max(jobTimes(job).wasmBytes, jobTimes(again).wasmBytes);
    return { wasmBytes, heap, live, rssBeforeBytes, rssPeakBytes };
  } finally {
    await service.stop();
  }
}

/** Peak of the heap while `work` runs. @param collect whether to collect garbage before each sample */
export async function watchHeap<T>(
  probe: HeapProbe | undefined,
  collect: boolean,
  work: () => Promise<T>,
): Promise<{ result: T; peak: HeapPeak | undefined }> {
  let peak: HeapPeak | undefined;
  let running = true;
  const watch = async (): Promise<void> => {
    while (running && probe) {
      if (collect) await probe.collectGarbage();
      const { usedBytes, bufferBytes } = await probe.usage();
      peak = {
        usedBytes: Math.max(peak?.usedBytes ?? 0, usedBytes),
        bufferBytes: Math.max(peak?.bufferBytes ?? 0, bufferBytes),
        bothBytes: Math.max(peak?.bothBytes ?? 0, usedBytes + bufferBytes),
        samples: (peak?.samples ?? 0) + 1,
      };
      await new Promise((wake) => setTimeout(wake, SAMPLE_EVERY_MS));
    }
  };
  const watching = watch();
  try {
    return { result: await work(), peak };
  } finally {
    running = false;
    await watching;
  }
}

/** A size from /proc; undefined without /proc. */
function readStatus(pid: number, field: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return match ? Number(match[1]) * 1024 : undefined;
  } catch {
    return undefined;
  }
}

function render(peaks: ReadonlyMap<string, Peak>, decoders: number): string {
  const mb = (bytes: number | undefined): string =>
    bytes === undefined ? 'not obtainable here' : `${(bytes / 1e6).toFixed(1)} MB`;
  const columns = [...peaks.values()];
  const row = (name: string, cell: (peak: Peak) => string): string[] => [name, ...columns.map(cell)];
  const total = (peak: Peak, heap: HeapPeak | undefined): string => {
    if (!heap) return mb(undefined);
    const bytes = peak.wasmBytes + decoders + heap.bothBytes;
    return `${mb(bytes)} (${((100 * bytes) / PLATFORM_LIMIT_BYTES).toFixed(0)} %)`;
  };
  const rows = [
    row('**WebAssembly memory** (inference, signal processing)', (peak) => `**${mb(peak.wasmBytes)}**`),
    row('**WebAssembly memory** of the decoders', () => `**${mb(decoders)}**`),
    row('JavaScript heap, garbage collected', (peak) => mb(peak.live?.usedBytes)),
    row('ArrayBuffers, garbage collected', (peak) => mb(peak.live?.bufferBytes)),
    row('**isolate, in use: all of these** (of 128 MB)', (peak) => `**${total(peak, peak.live)}**`),
    row('JavaScript heap, garbage included', (peak) => mb(peak.heap?.usedBytes)),
    row('ArrayBuffers, as they stand', (peak) => mb(peak.heap?.bufferBytes)),
    row('isolate, garbage included (of 128 MB)', (peak) => total(peak, peak.heap)),
    row('workerd process, resident, before the job', (peak) => mb(peak.rssBeforeBytes)),
    row('workerd process, resident, peak', (peak) => mb(peak.rssPeakBytes)),
    row('samples of the heap (collected / not)', (peak) => `${peak.live?.samples ?? 0} / ${peak.heap?.samples ?? 0}`),
  ];
  return `One isolate of the real service during a job of ${LONG_SECONDS / 60} minutes of MP3, with all optional outputs
but the probabilities. WebAssembly memories never shrink: their size at the end of a shard, which the Worker logs, is
their peak so far; that of the decoders was read in Node after decoding the same file. The heap is read over workerd's
inspector every ${SAMPLE_EVERY_MS} ms, between the isolate's steps: a short peak within one step can be missed. The job
runs twice: once as it is, once with a garbage collection before every sample, which shows the memory in use; local
workerd enforces no limit and collects late. The process holds, besides this isolate, workerd itself, the isolates of
the local databases, buckets and queues, and compiled code: an upper bound.

${table(['', ...peaks.keys()], rows)}`;
}
