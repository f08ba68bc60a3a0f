import { readFileSync } from 'node:fs';
import { BenchService } from './bench-service.ts';
import { freePort, HeapProbe, type HeapUsage } from './inspector.ts';
import { longMp3 } from './long-recording.ts';
import type { LabelledRecording } from './recordings.ts';
import { table } from './report.ts';
import { say } from './shared.ts';
import { LONG_SECONDS, SETTINGS } from './speed.ts';
import { jobTimes } from './stages.ts';

const SAMPLE_EVERY_MS = 100;
/** Memory of an isolate in production, bytes. */
const PLATFORM_LIMIT_BYTES = 128e6;

interface Peak {
  readonly wasmBytes: number;
  readonly heap: HeapUsage | undefined;
  /** Largest sum of both parts in one sample. */
  readonly heapAndBuffersBytes: number;
  readonly samples: number;
  readonly rssBeforeBytes: number | undefined;
  readonly rssPeakBytes: number | undefined;
}

/** Peak memory of the isolate that runs a long job, in a fresh service for each setting. */
export async function measureMemory(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const path = recordings && longMp3(recordings, LONG_SECONDS);
  if (!path) return '**Not measured:** the long recording needs `../shared/audio` and ffmpeg.';
  const peaks = new Map<string, Peak>();
  for (const model of SETTINGS) {
    say(`memory of ${model} on ${LONG_SECONDS / 60} minutes of MP3`);
    peaks.set(model, await measureOne(path, model));
  }
  return render(peaks);
}

async function measureOne(path: string, model: (typeof SETTINGS)[number]): Promise<Peak> {
  const inspectorPort = await freePort();
  const service = await BenchService.start({ inspectorPort });
  try {
    const pid = service.workerdPid();
    const probe = await HeapProbe.connect(inspectorPort).catch(() => undefined);
    const rssBeforeBytes = pid && readStatus(pid, 'VmRSS');
    let running = true;
    let samples = 0;
    let heap: HeapUsage | undefined;
    let heapAndBuffersBytes = 0;
    const watch = async (): Promise<void> => {
      while (running && probe) {
        const now = await probe.usage();
        samples++;
        heapAndBuffersBytes = Math.max(heapAndBuffersBytes, now.usedBytes + now.bufferBytes);
        heap = {
          usedBytes: Math.max(heap?.usedBytes ?? 0, now.usedBytes),
          bufferBytes: Math.max(heap?.bufferBytes ?? 0, now.bufferBytes),
        };
        await new Promise((wake) => setTimeout(wake, SAMPLE_EVERY_MS));
      }
    };
    const watching = watch();
    const job = await service.diarize(path, { model, confidence: true, exclusive: true, turnLevelConfidence: true });
    running = false;
    await watching;
    const rssPeakBytes = pid && readStatus(pid, 'VmHWM');
    return { wasmBytes: jobTimes(job).wasmBytes, heap, heapAndBuffersBytes, samples, rssBeforeBytes, rssPeakBytes };
  } finally {
    await service.stop();
  }
}

/** A size out of /proc; undefined where the system has none. */
function readStatus(pid: number, field: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return match ? Number(match[1]) * 1024 : undefined;
  } catch {
    return undefined;
  }
}

function render(peaks: ReadonlyMap<string, Peak>): string {
  const mb = (bytes: number | undefined): string =>
    bytes === undefined ? 'not obtainable here' : `${(bytes / 1e6).toFixed(1)} MB`;
  const columns = [...peaks.values()];
  const row = (name: string, cell: (peak: Peak) => string): string[] => [name, ...columns.map(cell)];
  const isolate = (peak: Peak): number | undefined => peak.heap && peak.wasmBytes + peak.heapAndBuffersBytes;
  const rows = [
    row('**WebAssembly memory** (inference, signal processing)', (peak) => `**${mb(peak.wasmBytes)}**`),
    row('JavaScript heap in use', (peak) => mb(peak.heap?.usedBytes)),
    row('ArrayBuffers', (peak) => mb(peak.heap?.bufferBytes)),
    row('**isolate: WebAssembly + largest heap and buffers**', (peak) => `**${mb(isolate(peak))}**`),
    row('share of the 128 MB of production', (peak) => {
      const bytes = isolate(peak);
      return bytes === undefined ? '' : `${((100 * bytes) / PLATFORM_LIMIT_BYTES).toFixed(0)} %`;
    }),
    row('workerd process, resident, before the job', (peak) => mb(peak.rssBeforeBytes)),
    row('workerd process, resident, peak', (peak) => mb(peak.rssPeakBytes)),
    row('samples of the heap', (peak) => String(peak.samples)),
  ];
  return `One isolate of the real service during the job of ${LONG_SECONDS / 60} minutes of MP3, all optional outputs but the probabilities asked for.
WebAssembly memories never shrink: their size at the end of a shard is their peak so far, as the Worker logs it. The heap is asked for over workerd's inspector every
${SAMPLE_EVERY_MS} ms, between the isolate's steps: it may miss a short peak within one step. The process holds, beside this isolate, workerd itself,
the isolates of the local databases, buckets and queues, and compiled code: its size is an upper bound. Local workerd enforces no limit.

${table(['', ...peaks.keys()], rows)}`;
}
