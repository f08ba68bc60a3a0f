import { decoderBytes } from '../client/audio/ports.ts';
import { BenchService } from './bench-service.ts';
import { type CostItem, CPU_DAY, costItems, OBJECTS_COUNTED, USD_PER_MILLION } from './cost.ts';
import { freePort, HeapProbe, processCpuMs } from './machine.ts';
import { watchHeap } from './memory.ts';
import { type Coding, type LabelledRecording, tenVoices } from './recordings.ts';
import { table } from './report.ts';
import { diarizationError, rate, segmentsFromTurns } from './score/der.ts';
import { logProgress, longestHours } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';
import { type JobTimes, jobTimes } from './stages.ts';

/** What is measured; precision-2 only at lengths that take little time. */
const LENGTHS: readonly Length[] = [
  { name: '1 min', hours: 1 / 60, coding: 'music', settings: SETTINGS },
  { name: '1 h', hours: 1, coding: 'music', settings: SETTINGS },
  // In the coding of the hour these would exceed the largest upload.
  { name: '8 h', hours: 8, coding: 'compact', settings: SETTINGS },
  { name: '24 h', hours: 24, coding: 'compact', settings: ['community-1'] },
  { name: '1 GiB of WAV (16 min)', hours: 932 / 3600, coding: 'studio', settings: ['community-1'] },
  { name: '1 GiB of Matroska (1 h)', hours: 1, coding: 'film', settings: ['community-1'] },
];

interface Length {
  readonly name: string;
  readonly hours: number;
  readonly coding: Coding;
  readonly settings: readonly Setting[];
}

/** Jobs of at least this length run twice: the second run measures memory in use. */
const IN_USE_HOURS = 1;
/** The decoders' WebAssembly memory, which the Worker does not log: measured in Node with an MP3. */
export const LEAST_DECODER_BYTES = 2e6;

interface Measured {
  readonly length: Length;
  readonly setting: Setting;
  readonly times: JobTimes;
  readonly cpuMs: number | undefined;
  readonly longestShardMs: number;
  readonly requests: number;
  /** Heap, buffers and WebAssembly memories, garbage included; undefined if the inspector does not answer. */
  readonly isolateBytes: number | undefined;
  /** In a second run with a garbage collection before every sample; only of long recordings. */
  readonly inUseBytes: number | undefined;
  readonly speakers: number;
  readonly der: number;
}

/** Jobs on recordings of a minute to a day through the real service; `ROLLCALL_LONGEST_HOURS` bounds them. */
export async function measureLengths(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the recordings need `../shared/audio`.';
  const longest = longestHours();
  const rows: Measured[] = [];
  for (const length of LENGTHS) {
    if (length.hours > longest) continue;
    const recording = await tenVoices(recordings, Math.round(length.hours * 3600), length.coding);
    if (!recording) return '**Not measured:** the recordings need ffmpeg.';
    for (const setting of length.settings) {
      logProgress(`${setting} on ${length.name}`);
      rows.push(await measureOne(recording, length, setting, recordings[0].path));
    }
  }
  return render(rows, longest);
}

async function measureOne(
  recording: NonNullable<Awaited<ReturnType<typeof tenVoices>>>,
  length: Length,
  setting: Setting,
  warmUp: string,
): Promise<Measured> {
  const inspectorPort = await freePort();
  const service = await BenchService.start({ inspectorPort });
  try {
    await service.diarize(warmUp, { model: setting });
    const pid = service.workerdPid();
    const probe = await HeapProbe.connect(inspectorPort).catch(() => undefined);
    const cpuBefore = processCpuMs(pid);
    const options = {
      model: setting,
      exclusive: true,
      turnLevelConfidence: true,
      speakerProbability: length.hours >= 24,
    };
    const run = () => service.diarize(recording.path, options);
    const { result: job, peak } = await watchHeap(probe, false, run);
    const cpuAfter = processCpuMs(pid);
    const again = length.hours < IN_USE_HOURS ? undefined : await watchHeap(probe, true, run);
    const times = jobTimes(job);
    const error = diarizationError(recording.reference, segmentsFromTurns(job.output.diarization));
    const shardMs = job.log.filter(({ event }) => event === 'shard_done').map(({ totalMs }) => Number(totalMs));
    const wasmBytes = times.wasmBytes + Math.max(LEAST_DECODER_BYTES, decoderBytes());
    return {
      length,
      setting,
      times,
      cpuMs: cpuBefore === undefined || cpuAfter === undefined ? undefined : cpuAfter - cpuBefore,
      longestShardMs: Math.max(...shardMs),
      requests: job.requests,
      isolateBytes: peak && peak.bothBytes + wasmBytes,
      inUseBytes: again?.peak && again.peak.bothBytes + wasmBytes,
      speakers: error.hypothesisSpeakers,
      der: rate(error).der,
    };
  } finally {
    await service.stop();
  }
}

function render(rows: readonly Measured[], longest: number): string {
  const head = ['', ...rows.map(({ length, setting }) => `${length.name}, ${setting}`)];
  const row = (name: string, cell: (one: Measured) => string): string[] => [name, ...rows.map(cell)];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const audioMs = (one: Measured): number => 1000 * one.times.audioSeconds;
  const unknown = 'not obtainable here';
  const megabytes = (bytes: number | undefined) => (bytes === undefined ? unknown : `${(bytes / 1e6).toFixed(1)} MB`);
  const dollars = (count: (items: CostItem[]) => CostItem[]) => (one: Measured) =>
    one.cpuMs
      ? count(costItems(one.cpuMs, one.times))
          .reduce((sum, { usdPerHour }) => sum + usdPerHour, 0)
          .toFixed(5)
      : unknown;
  const cells = [
    row('wall clock, created to succeeded', ({ times }) => seconds(times.wallMs)),
    row('**× real time**', (one) => `**${(audioMs(one) / one.times.wallMs).toFixed(1)}**`),
    row('CPU of the workerd process', ({ cpuMs }) => (cpuMs === undefined ? unknown : seconds(cpuMs))),
    row('CPU an hour of audio', (one) => (one.cpuMs ? `${((3600 * one.cpuMs) / audioMs(one)).toFixed(1)} s` : unknown)),
    row('× real time of that CPU', (one) => (one.cpuMs ? (audioMs(one) / one.cpuMs).toFixed(1) : unknown)),
    row('created to ingested, first shards beside it', ({ times }) => seconds(times.ingestMs)),
    row('shards', ({ times }) => String(times.shards)),
    row('slowest shard', ({ longestShardMs }) => seconds(longestShardMs)),
    row('assembly, output included', ({ times }) => seconds(times.assembleMs)),
    row('requests to the source', ({ requests }) => String(requests)),
    row('**peak of the isolate, in use** (of 128 MB)', ({ length, inUseBytes }) =>
      length.hours < IN_USE_HOURS ? '–' : `**${megabytes(inUseBytes)}**`,
    ),
    row('peak of the isolate, garbage included', ({ isolateBytes }) => megabytes(isolateBytes)),
    row('speakers found, of 10 in all but the first', ({ speakers }) => String(speakers)),
    row('DER, %', ({ der }) => der.toFixed(1)),
    row(
      '**USD an hour of audio: CPU**',
      dollars((items) => items.slice(0, 1)),
    ),
    row(
      'with requests, queues and objects',
      dollars((items) => items),
    ),
  ];
  const bounded = longest < 24 ? ` The longest were left out (\`ROLLCALL_LONGEST_HOURS=${longest}\`).` : '';
  return `Recordings in which the same ten people talk: labelled conversations, each repeat with its own gain and noise,
MP3 of 44.1 kHz stereo at 128 kbit/s up to an hour, of 22.05 kHz mono at 32 kbit/s beyond; two have the largest size
allowed: PCM of 192 kHz and 24 bits, and a film whose sound is AAC. Each job in a fresh local service (one workerd, one
thread) that one short job has warmed up, with exclusive turns and confidences of turns, and with the speakers'
probabilities for the day. CPU is that of the whole workerd process: the Worker, and the local database, buckets and
queues, which the platform would not bill as CPU. Jobs of an hour and more ran a second time with a garbage collection
before every sample of the memory, because local workerd enforces no limit and collects late.${bounded}

${table(head, cells)}

Cost: the platform's list prices of ${CPU_DAY}, in USD a million: ${Object.entries(USD_PER_MILLION)
    .map(([name, usd]) => `${name} ${usd}`)
    .join(', ')}; a job of n shards counts as n + 2 requests, three queue operations a message,
${OBJECTS_COUNTED}; storage, database rows and Durable Object requests are not counted, and amounts that the plan
includes are not subtracted.`;
}
