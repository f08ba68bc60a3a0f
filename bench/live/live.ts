import { nodeAudio } from '../../client/audio/ports.ts';
import { SAMPLE_RATE_HZ } from '../../src/audio/audio-ports.ts';
import { percentile } from '../load.ts';
import { nodeEngine, packOfService, pldaOf } from '../pipeline.ts';
import { type LabelledRecording, loadGeneratedMeetings, setsOf } from '../recordings.ts';
import { table } from '../report.ts';
import { type DiarizationError, pool, rate } from '../score/der.ts';
import { SETTINGS } from '../speed.ts';
import { measureService, type ServiceResult } from './live-service.ts';
import {
  boundMinutes,
  capacityOf,
  type EventDelay,
  joined,
  type LatencyResult,
  type LongResult,
  MATCH_WITHIN_SECONDS,
  measureLatency,
  measureLong,
  measureOffline,
  within,
} from './measure.ts';
import { LATENCIES_MS, liveEngine, observeStream, openSession } from './observe.ts';

interface AccuracyRow {
  readonly what: string;
  readonly errors: readonly DiarizationError[];
}

const percent = (value: number): string => value.toFixed(1);
const ms = (value: number): string => `${value.toFixed(0)} ms`;

/** Diarization error rates by set. */
function accuracyTable(recordings: readonly LabelledRecording[], rows: readonly AccuracyRow[]): string {
  const sets = setsOf(recordings);
  const cells = ({ what, errors }: AccuracyRow): string[] => {
    const perSet = sets.map((set) => percent(rate(pool(errors.filter((_, at) => recordings[at].set === set))).der));
    const { der, miss, falseAlarm, confusion } = rate(pool(errors));
    const counts = (wrong: (error: DiarizationError) => boolean): string => String(errors.filter(wrong).length);
    return [
      what,
      ...perSet,
      `**${percent(der)}**`,
      ...[miss, falseAlarm, confusion].map(percent),
      counts((error) => error.hypothesisSpeakers === error.referenceSpeakers),
      counts((error) => error.hypothesisSpeakers < error.referenceSpeakers),
      counts((error) => error.hypothesisSpeakers > error.referenceSpeakers),
    ];
  };
  const head = ['', ...sets, 'all', 'miss', 'false alarm', 'confusion', 'speakers right', 'too few', 'too many'];
  return table(head, rows.map(cells));
}

/** Delays of starts and ends, and the share of computing in them. */
function delayTable(results: readonly LatencyResult[]): string {
  const rows = results.flatMap(({ latencyMs, load, moments }) =>
    (['start', 'end'] as const).map((kind) => {
      const delays = load.delays.filter((delay) => delay.kind === kind);
      const matched = `${delays.length} of ${moments / 2}`;
      if (delays.length === 0) return [ms(latencyMs), kind, matched, '–', '–', '–'];
      const totals = delays.map(totalMs);
      const computing = sum(delays.map(({ computeMs }) => computeMs)) / sum(totals);
      const [median, p95] = [percentile(totals, 0.5), percentile(totals, 0.95)];
      return [ms(latencyMs), kind, matched, `**${ms(median)}**`, ms(p95), `${percent(100 * computing)} %`];
    }),
  );
  return `${table(['latency', 'of', 'matched', 'median', 'p95', 'computing'], rows, 2)}

A moment of the reference is matched with an event of the same kind and of the speaker in the optimal mapping, whose
timestamp is within ${MATCH_WITHIN_SECONDS} s of it; one to one, the closest first. Delay, if frames arrive in real
time: the audio that had arrived when \`push\` returned the event, minus the moment, plus the CPU time of that push.
Events that the end of a stream brings are left out.`;
}

/** Computing time of pushes, and the number of streams that a core carries at each latency. */
function capacityTable(results: readonly LatencyResult[]): string {
  const rows = results.map(({ latencyMs, load, audioSeconds }) => {
    const pushes = [sum(load.pushMs) / audioSeconds, percentile(load.pushMs, 0.99), Math.max(...load.pushMs)];
    const cells = [ms(latencyMs), ...pushes.map((value) => `${value.toFixed(1)} ms`)];
    if (load.delays.length === 0) return [...cells, '–', '–', '–', '–'];
    const { streams, p95AloneMs, p95Ms, p95BeyondMs } = capacityOf(load);
    return [...cells, `**${streams}**`, ms(p95AloneMs), ms(p95Ms), ms(p95BeyondMs)];
  });
  const head = ['latency', 'CPU a second of audio', 'push p99', 'longest push', 'streams a core'];
  return `${table([...head, 'p95 delay of one stream', 'of this number', 'of one more'], rows)}

Streams a core: the most at which the 95th percentile of the delays is at most twice that of one stream, in a simulated
queue of the measured pushes (all recordings as one stream, from another offset for each stream; frames are spread
evenly and handled in order of arrival).`;
}

/** Label changes, snapshots and CPU time of a long stream. */
function longTable(result: LongResult): string {
  const { turns, changes, correctedChanges, snapshotBytes, audioSeconds, latencyMs, speakers } = result;
  const kib = (bytes: number): string => `${(bytes / 1024).toFixed(0)} KiB`;
  const minutes = audioSeconds / 60;
  const rows = [
    ['label changes an hour', `**${((60 * changes) / minutes).toFixed(0)}**`],
    ['with the corrections', ((60 * correctedChanges) / minutes).toFixed(0)],
    ['turns after the first of a speaker', String(turns)],
    ['of these with another label than before', `${turns > 0 ? percent((100 * changes) / turns) : '–'} %`],
    ['snapshot after a minute', kib(snapshotBytes[0])],
    ['snapshot at the end; largest', `${kib(snapshotBytes.at(-1)!)}; ${kib(Math.max(...snapshotBytes))}`],
    ['CPU a second of audio, first quarter', `${result.firstQuarterMs.toFixed(1)} ms`],
    ['CPU a second of audio, last quarter', `${result.lastQuarterMs.toFixed(1)} ms`],
  ];
  return `The recordings one after the other, ${minutes.toFixed(0)} minutes as one stream with ${speakers} people (8
labels at most), latency ${ms(latencyMs)}. Label change: the label that covers most of a speaker's turn differs from the
one of the speaker's previous turn.

${table(['', ''], rows)}`;
}

/** Delays of streams through the running service. */
function serviceTable(results: readonly ServiceResult[] | undefined, latencyMs: number): string {
  if (!results)
    return '**The service itself was not measured:** it has no `POST /v1/live`, or no recording is long enough.';
  const rows = results.map(({ streams, events, medianMs, p95Ms, cpuMs, failures }) => [
    String(streams),
    String(events),
    ms(medianMs),
    ms(p95Ms),
    cpuMs === undefined ? '–' : `${cpuMs.toFixed(0)} ms`,
    String(failures.length),
  ]);
  const reasons = [...new Set(results.flatMap(({ failures }) => failures))];
  const why = reasons.length === 0 ? '' : `\n\nFailed streams: ${reasons.join('; ')}.`;
  return `The real service in workerd (one thread), concurrent WebSocket streams in real time, latency ${ms(latencyMs)};
from the timestamp of an event until the client receives it. The clients run on the same machine.

${table(['streams', 'events', 'median', 'p95', 'CPU a second of audio', 'failed streams'], rows)}${why}`;
}

const totalMs = ({ audioMs, computeMs }: EventDelay): number => audioMs + computeMs;

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Latency of the long stream and of the streams through the service: the default of the API. */
const USUAL_LATENCY_MS = 1000;
const LONG_MINUTES = 60;
const ABOUT_ACCURACY = `Corrected: the client asks for corrections and applies them to events it has received; starts
and ends are the same. Published figures of others, on whole corpora: diart 34.1 on AMI and 22.2 on VoxConverse at 0.5 s
of latency, 27.5 and 16.8 at 5 s; LS-EEND 20.8 on AMI.`;
const WARM_UP_SAMPLES = 10 * SAMPLE_RATE_HZ;

/** Live diarization: accuracy beside the jobs', delays, capacity of a core, stability of labels over an hour. */
export async function measureLive(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the labelled recordings of `../shared/audio` are not here.';
  const minutes = boundMinutes();
  const bounded = within(recordings, minutes);
  const measured = await measureRecordings(bounded);
  const generated = await loadGeneratedMeetings(nodeAudio());
  const meetings = generated && within(generated, minutes);
  const engine = await liveEngine(packOfService('community-1'));
  const hour = joined(recordings, 60 * Math.min(LONG_MINUTES, minutes));
  const long = await measureLong(engine, USUAL_LATENCY_MS, hour);
  const service = await measureService(recordings, USUAL_LATENCY_MS, 60 * minutes);
  const parts = [
    `${bounded.length} labelled recordings, each as a separate stream, in frames of 100 ms; DER in percent, no collar,
overlap scored, pooled over a folder. The jobs' settings on the same recordings in the same run. Made in Node with the
Worker's code and WebAssembly.`,
    `${accuracyTable(bounded, measured.rows)}

${ABOUT_ACCURACY}`,
    '### Delay of events',
    delayTable(measured.live),
    '### Capacity',
    capacityTable(measured.live),
    serviceTable(service, USUAL_LATENCY_MS),
    '### A long stream',
    longTable(long),
  ];
  if (meetings) {
    const { rows, live } = await measureRecordings(meetings);
    parts.push('### Generated meetings', accuracyTable(meetings, rows), delayTable(live));
  }
  return parts.join('\n\n');
}

async function measureRecordings(
  recordings: readonly LabelledRecording[],
): Promise<{ rows: AccuracyRow[]; live: LatencyResult[] }> {
  const pack = packOfService('community-1');
  const rows: AccuracyRow[] = [];
  const live: LatencyResult[] = [];
  const engine = await liveEngine(pack);
  // The first run of a model takes longer.
  await observeStream(openSession(engine, USUAL_LATENCY_MS), recordings[0].samples.subarray(0, WARM_UP_SAMPLES));
  for (const latencyMs of LATENCIES_MS) {
    const result = await measureLatency(engine, latencyMs, recordings);
    live.push(result);
    rows.push({ what: `live, ${latencyMs} ms`, errors: result.errors });
    rows.push({ what: `live, ${latencyMs} ms, corrected`, errors: result.corrected });
  }
  const jobs = await nodeEngine(pack);
  for (const setting of SETTINGS) {
    rows.push({ what: setting, errors: await measureOffline(jobs, pldaOf(pack), setting, recordings) });
  }
  return { rows, live };
}
