import type { Plda } from '../../src/diarization/index.ts';
import { settingsOf } from '../../src/diarization/index.ts';
import type { Engine } from '../../src/jobs/job-ports.ts';
import type { LiveEngine } from '../../src/live/index.ts';
import { analyse, finish } from '../pipeline.ts';
import type { LabelledRecording } from '../recordings.ts';
import { type DiarizationError, diarizationError } from '../score/der.ts';
import { segmentsFromTurns } from '../score/rttm.ts';
import { say } from '../shared.ts';
import type { Setting } from '../speed.ts';
import { eventDelays } from './delay.ts';
import { type LabelChanges, labelChanges } from './labels.ts';
import type { JoinedRecording } from './material.ts';
import { observeStream } from './observe.ts';
import type { Load } from './queue.ts';
import { openSession } from './sessions.ts';

/** Live diarization of all recordings at one latency, in their order. */
export interface LatencyResult {
  readonly latencyMs: number;
  readonly errors: readonly DiarizationError[];
  /** With the corrections. */
  readonly corrected: readonly DiarizationError[];
  /** All recordings as one stream: pushes and the delays of their events. */
  readonly load: Load;
  /** Moments of the reference, told or not. */
  readonly moments: number;
  readonly audioSeconds: number;
}

/** Every recording as a stream of its own. */
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
    say(`live, latency ${latencyMs} ms: ${name}`);
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

/** The same recordings as jobs, for comparison. */
export async function measureOffline(
  engine: Engine,
  plda: Plda | undefined,
  setting: Setting,
  recordings: readonly LabelledRecording[],
): Promise<DiarizationError[]> {
  const errors: DiarizationError[] = [];
  for (const { name, reference, samples } of recordings) {
    say(`${setting}: ${name}`);
    const part = await analyse(samples, engine, settingsOf(setting));
    const output = await finish(part, samples.length, settingsOf(setting), plda);
    errors.push(diarizationError(reference, segmentsFromTurns(output?.diarization ?? [])));
  }
  return errors;
}

/** A long stream: whether labels stay, and what it keeps. */
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

/** One stream as long as all recordings joined: errors, computing time at its beginning and end, size of what is stored. */
export async function measureLong(
  engine: LiveEngine,
  latencyMs: number,
  { samples, reference, speakers }: JoinedRecording,
): Promise<LongResult> {
  say(`live, latency ${latencyMs} ms: one stream of ${(samples.length / 16_000 / 60).toFixed(0)} minutes`);
  const { found, corrected, pushMs, snapshotBytes, audioSeconds } = await observeStream(
    openSession(engine, latencyMs),
    samples,
  );
  const quarter = Math.ceil(pushMs.length / 4);
  const perSecond = (part: readonly number[]): number =>
    (10 * part.reduce((total, ms) => total + ms, 0)) / Math.max(1, part.length);
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
