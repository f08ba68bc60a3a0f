import { SAMPLE_RATE_HZ } from '../../src/audio/audio-ports.ts';
import type { Plda } from '../../src/diarization/clustering/plda.ts';
import { settingsOf } from '../../src/diarization/parameters.ts';
import type { Engine } from '../../src/jobs/job-ports.ts';
import type { LiveEngine } from '../../src/live/live-session.ts';
import { percentile } from '../load.ts';
import { analyse, finish } from '../pipeline.ts';
import { type LabelledRecording, setsOf } from '../recordings.ts';
import {
  type DiarizationError,
  diarizationError,
  type LabelledSegment,
  optimalMapping,
  segmentsFromTurns,
} from '../score/der.ts';
import { logProgress } from '../shared.ts';
import type { Setting } from '../speed.ts';
import { type ObservedStream, observeStream, openSession, type TimedEvent } from './observe.ts';

/** Bound on the audio of each part, from `ROLLCALL_LIVE_MINUTES`; infinite without it. */
export function boundMinutes(text = process.env.ROLLCALL_LIVE_MINUTES): number {
  if (text === undefined || text === '') return Number.POSITIVE_INFINITY;
  const minutes = Number(text);
  if (!(minutes > 0)) throw new Error(`ROLLCALL_LIVE_MINUTES must be a number above 0, not "${text}"`);
  return minutes;
}

/** Recordings of every set alternately until `minutes` are reached, at least one of each set, in the given order. */
export function within(recordings: readonly LabelledRecording[], minutes: number): LabelledRecording[] {
  const sets = setsOf(recordings).map((set) => recordings.filter((one) => one.set === set));
  const longest = Math.max(0, ...sets.map(({ length }) => length));
  const taken = new Set<LabelledRecording>();
  let samples = 0;
  for (let round = 0; round < longest; round++) {
    for (const set of sets) {
      const recording = set[round];
      if (!recording || (round > 0 && samples >= minutes * 60 * SAMPLE_RATE_HZ)) continue;
      taken.add(recording);
      samples += recording.samples.length;
    }
  }
  return recordings.filter((one) => taken.has(one));
}

interface JoinedRecording {
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
  readonly speakers: number;
}

/**
 * One stream of the recordings one after the other, repeated until `seconds` are filled. Names of speakers include
 * their recording, so that equal names of two recordings are two speakers, and a repeated recording adds none.
 */
export function joined(recordings: readonly LabelledRecording[], seconds: number): JoinedRecording {
  const samples = new Float32Array(Math.round(seconds * SAMPLE_RATE_HZ));
  const reference: LabelledSegment[] = [];
  let filled = 0;
  for (let next = 0; filled < samples.length; next++) {
    const recording = recordings[next % recordings.length];
    const added = recording.samples.subarray(0, samples.length - filled);
    const offsetMicros = Math.round((1e6 * filled) / SAMPLE_RATE_HZ);
    const lastMicros = Math.round((1e6 * samples.length) / SAMPLE_RATE_HZ);
    for (const { speaker, startMicros, endMicros } of recording.reference) {
      const segment = {
        speaker: `${recording.set}/${recording.name}/${speaker}`,
        startMicros: startMicros + offsetMicros,
        endMicros: Math.min(lastMicros, endMicros + offsetMicros),
      };
      if (segment.endMicros > segment.startMicros) reference.push(segment);
    }
    samples.set(added, filled);
    filled += added.length;
  }
  return { samples, reference, speakers: new Set(reference.map(({ speaker }) => speaker)).size };
}

/** Largest distance between the timestamp of an event and the moment that it is matched with. */
export const MATCH_WITHIN_SECONDS = 1;

/** A moment at which a speaker of the reference begins or ends a turn. */
interface Moment {
  readonly kind: 'start' | 'end';
  readonly speaker: string;
  readonly seconds: number;
}

/** Delay of an event after its moment in the reference. */
export interface EventDelay {
  /** Index of the push that returned the event. */
  readonly push: number;
  readonly kind: Moment['kind'];
  /** From the moment to the end of the audio that had arrived when the event was returned. */
  readonly audioMs: number;
  /** Computing time of the push. */
  readonly computeMs: number;
}

interface EventDelays {
  readonly delays: readonly EventDelay[];
  /** All moments of the reference, with or without an event. */
  readonly moments: number;
}

/** Starts and ends of the turns; segments of a speaker that touch or overlap are one turn. */
function momentsOf(reference: readonly LabelledSegment[]): Moment[] {
  return turnsOf(reference).flatMap(({ speaker, startMicros, endMicros }) => [
    { kind: 'start' as const, speaker, seconds: startMicros / 1e6 },
    { kind: 'end' as const, speaker, seconds: endMicros / 1e6 },
  ]);
}

/** Joins segments of the same speaker that touch or overlap; sorted by start. */
function turnsOf(reference: readonly LabelledSegment[]): LabelledSegment[] {
  const turns: LabelledSegment[] = [];
  const last = new Map<string, number>();
  for (const segment of [...reference].sort((a, b) => a.startMicros - b.startMicros)) {
    const index = last.get(segment.speaker);
    const before = index === undefined ? undefined : turns[index];
    if (index !== undefined && before && segment.startMicros <= before.endMicros) {
      turns[index] = { ...before, endMicros: Math.max(before.endMicros, segment.endMicros) };
    } else {
      last.set(segment.speaker, turns.length);
      turns.push(segment);
    }
  }
  return turns;
}

/**
 * Matches moments of the reference with events and measures the delays. A moment is matched with an event of the same
 * kind within `MATCH_WITHIN_SECONDS` whose speaker the optimal mapping of the recording gives to the moment's speaker;
 * one to one, the closest pairs first. Moments without such an event are errors of the diarization, not delays.
 */
export function eventDelays(reference: readonly LabelledSegment[], { found, events }: ObservedStream): EventDelays {
  const mapping = optimalMapping(reference, found);
  const moments = momentsOf(reference);
  const pairs = moments.flatMap((moment) =>
    events
      .filter((event) => event.kind === moment.kind && mapping.get(String(event.speaker)) === moment.speaker)
      .map((event) => ({ moment, event, distance: Math.abs(event.timestampSeconds - moment.seconds) }))
      .filter(({ distance }) => distance <= MATCH_WITHIN_SECONDS),
  );
  const taken = new Set<Moment | TimedEvent>();
  const delays: EventDelay[] = [];
  for (const { moment, event } of pairs.sort((a, b) => a.distance - b.distance)) {
    if (taken.has(moment) || taken.has(event)) continue;
    taken.add(moment).add(event);
    const { push, kind, streamSeconds, computeMs } = event;
    delays.push({ push, kind, audioMs: 1000 * (streamSeconds - moment.seconds), computeMs });
  }
  return { delays, moments: moments.length };
}

interface LabelChanges {
  /** Turns of the reference that have a label, without the first of each speaker. */
  readonly turns: number;
  /** Turns whose label differs from that of the speaker's previous turn. */
  readonly changes: number;
}

/**
 * Counts turns whose label differs from that of the speaker's previous turn. The label of a turn is the one that covers
 * most of it; turns without any label are left out.
 */
export function labelChanges(reference: readonly LabelledSegment[], found: readonly LabelledSegment[]): LabelChanges {
  const before = new Map<string, string>();
  let turns = 0;
  let changes = 0;
  for (const turn of turnsOf(reference)) {
    const label = majorityLabel(turn, found);
    if (label === undefined) continue;
    const previous = before.get(turn.speaker);
    before.set(turn.speaker, label);
    if (previous === undefined) continue;
    turns++;
    if (previous !== label) changes++;
  }
  return { turns, changes };
}

function majorityLabel(turn: LabelledSegment, found: readonly LabelledSegment[]): string | undefined {
  const shared = new Map<string, number>();
  for (const { speaker, startMicros, endMicros } of found) {
    const micros = Math.min(endMicros, turn.endMicros) - Math.max(startMicros, turn.startMicros);
    if (micros > 0) shared.set(speaker, (shared.get(speaker) ?? 0) + micros);
  }
  const [most] = [...shared].sort(([, a], [, b]) => b - a);
  return most?.[0];
}

const FRAME_MS = 100;
/** Bound of the search for the capacity, in case pushes cost no time. */
const MOST_STREAMS = 1000;

/** Measured pushes of one stream, and the delays of the events they returned. */
interface Load {
  readonly pushMs: readonly number[];
  readonly delays: readonly EventDelay[];
}

export interface Capacity {
  readonly streams: number;
  readonly p95AloneMs: number;
  readonly p95Ms: number;
  /** With one stream more. */
  readonly p95BeyondMs: number;
}

/**
 * Delays of all events when `streams` streams share one core. Each is the measured stream from another offset. Each
 * stream sends a frame every 100 ms, evenly spread over the streams; the core handles frames in order of arrival.
 */
export function delaysOf({ pushMs, delays }: Load, streams: number): number[] {
  const { length } = pushMs;
  const byPush = new Map<number, number[]>();
  for (const { push, audioMs } of delays) byPush.set(push, [...(byPush.get(push) ?? []), audioMs]);
  const result: number[] = [];
  let freeAt = 0;
  for (let frame = 0; frame < length; frame++) {
    for (let stream = 0; stream < streams; stream++) {
      const push = (frame + Math.floor((stream * length) / streams)) % length;
      const arrivesAt = (frame + stream / streams) * FRAME_MS;
      freeAt = Math.max(freeAt, arrivesAt) + pushMs[push];
      for (const audioMs of byPush.get(push) ?? []) result.push(audioMs + freeAt - arrivesAt);
    }
  }
  return result;
}

/** The most streams on one core for which the 95th percentile of the delays is at most twice that of one stream. */
export function capacityOf(load: Load): Capacity {
  const p95 = (streams: number): number => percentile(delaysOf(load, streams), 0.95);
  const p95AloneMs = p95(1);
  let p95Ms = p95AloneMs;
  for (let streams = 1; streams < MOST_STREAMS; streams++) {
    const p95BeyondMs = p95(streams + 1);
    if (p95BeyondMs > 2 * p95AloneMs) return { streams, p95AloneMs, p95Ms, p95BeyondMs };
    p95Ms = p95BeyondMs;
  }
  return { streams: MOST_STREAMS, p95AloneMs, p95Ms, p95BeyondMs: p95Ms };
}

/** Live diarization of all recordings at one latency, in the order of the recordings. */
export interface LatencyResult {
  readonly latencyMs: number;
  readonly errors: readonly DiarizationError[];
  /** With the corrections. */
  readonly corrected: readonly DiarizationError[];
  /** Pushes and delays of all recordings, one after the other. */
  readonly load: Load;
  /** All moments of the reference, with or without an event. */
  readonly moments: number;
  readonly audioSeconds: number;
}

/** Measures every recording as a separate stream. */
export async function measureLatency(
  engine: LiveEngine,
  latencyMs: number,
  recordings: readonly LabelledRecording[],
): Promise<LatencyResult> {
  const errors: DiarizationError[] = [];
  const corrected: DiarizationError[] = [];
  const pushMs: number[] = [];
  const delays: Load['delays'][number][] = [];
  let moments = 0;
  let audioSeconds = 0;
  for (const { name, reference, samples } of recordings) {
    logProgress(`live, latency ${latencyMs} ms: ${name}`);
    const observed = await observeStream(openSession(engine, latencyMs), samples);
    errors.push(diarizationError(reference, observed.found));
    corrected.push(diarizationError(reference, observed.corrected));
    const measured = eventDelays(reference, observed);
    const offset = pushMs.length;
    delays.push(...measured.delays.map((delay) => ({ ...delay, push: delay.push + offset })));
    pushMs.push(...observed.pushMs);
    moments += measured.moments;
    audioSeconds += observed.audioSeconds;
  }
  return { latencyMs, errors, corrected, load: { pushMs, delays }, moments, audioSeconds };
}

/** Errors of the same recordings as jobs, for comparison. */
export async function measureOffline(
  engine: Engine,
  plda: Plda | undefined,
  setting: Setting,
  recordings: readonly LabelledRecording[],
): Promise<DiarizationError[]> {
  const errors: DiarizationError[] = [];
  for (const { name, reference, samples } of recordings) {
    logProgress(`${setting}: ${name}`);
    const part = await analyse(samples, engine, settingsOf(setting));
    const output = await finish(part, samples.length, settingsOf(setting), plda);
    errors.push(diarizationError(reference, segmentsFromTurns(output?.diarization ?? [])));
  }
  return errors;
}

/** A long stream: stability of labels, and size of its snapshots. */
export interface LongResult extends LabelChanges {
  /** Label changes with the corrections. */
  readonly correctedChanges: number;
  readonly latencyMs: number;
  readonly audioSeconds: number;
  readonly speakers: number;
  readonly snapshotBytes: readonly number[];
  /** Computing time of the first and of the last quarter, milliseconds per second of audio. */
  readonly firstQuarterMs: number;
  readonly lastQuarterMs: number;
}

/** Measures label changes, computing time at the beginning and end, and snapshot sizes of one long stream. */
export async function measureLong(
  engine: LiveEngine,
  latencyMs: number,
  { samples, reference, speakers }: JoinedRecording,
): Promise<LongResult> {
  logProgress(
    `live, latency ${latencyMs} ms: one stream of ${(samples.length / SAMPLE_RATE_HZ / 60).toFixed(0)} minutes`,
  );
  const { found, corrected, pushMs, snapshotBytes, audioSeconds } = await observeStream(
    openSession(engine, latencyMs),
    samples,
  );
  const quarter = Math.ceil(pushMs.length / 4);
  const perSecond = (pushes: readonly number[]): number =>
    (10 * pushes.reduce((total, ms) => total + ms, 0)) / Math.max(1, pushes.length);
  return {
    ...labelChanges(reference, found),
    correctedChanges: labelChanges(reference, corrected).changes,
    latencyMs,
    audioSeconds,
    speakers,
    snapshotBytes,
    firstQuarterMs: perSecond(pushMs.slice(0, quarter)),
    lastQuarterMs: perSecond(pushMs.slice(-quarter)),
  };
}
