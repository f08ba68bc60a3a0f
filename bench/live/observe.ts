import { collectTurns } from '../../client/live/turns.ts';
import { SAMPLE_RATE_HZ } from '../../src/audio/audio-ports.ts';
import { MAX_SPEAKERS } from '../../src/contract/live-limits.ts';
import type { Engine } from '../../src/jobs/job-ports.ts';
import type { LiveEngine, LiveEvent, LiveSession, TurnEvent } from '../../src/live/live-session.ts';
import { createLiveSession } from '../../src/live/rolling-session.ts';
import { DEFAULT_IDENTIFICATION } from '../../src/voiceprint/identification.ts';
import { type MeasuredPack, nodeEngine, pldaOf } from '../pipeline.ts';
import { type LabelledSegment, segmentsFromTurns } from '../score/der.ts';

/** Latencies that are measured, milliseconds. */
export const LATENCIES_MS = [500, 1000, 2000] as const;

/** The service's engine in this process, with the parameters that live streams need. */
export async function liveEngine(pack: MeasuredPack): Promise<Engine & LiveEngine> {
  const identification = pack.pack.embedding.identification ?? DEFAULT_IDENTIFICATION;
  return { ...(await nodeEngine(pack)), plda: pldaOf(pack), identification };
}

/** A stream with the default options of a client, except latency and corrections (these change no start or end). */
export function openSession(engine: LiveEngine, latencyMs: number): LiveSession {
  return createLiveSession(engine, { latencyMs, maxSpeakers: MAX_SPEAKERS, voices: [], corrections: true });
}

/** 100 ms, the frames that clients send. */
export const FRAME_SAMPLES = 1600;
const FRAMES_PER_MINUTE = 600;

/** An event, and when it would be sent if frames arrived in real time. */
export interface TimedEvent extends TurnEvent {
  /** Index of the push that returned it. */
  readonly push: number;
  /** Audio that had arrived when the push returned. */
  readonly streamSeconds: number;
  /** Computing time of that push. */
  readonly computeMs: number;
}

/** Result of a stream whose frames were pushed without waiting. */
export interface ObservedStream {
  readonly audioSeconds: number;
  /** Segments as first sent. */
  readonly found: readonly LabelledSegment[];
  /** Segments with the corrections. */
  readonly corrected: readonly LabelledSegment[];
  /** Starts and ends. Those that `finish` returns are left out: they come without look-ahead. */
  readonly events: readonly TimedEvent[];
  /** Computing time of every push. */
  readonly pushMs: readonly number[];
  /** Size of a snapshot after every minute, and at the end. */
  readonly snapshotBytes: readonly number[];
}

/** Feeds samples to a session in frames of 100 ms. */
export async function observeStream(session: LiveSession, samples: Float32Array): Promise<ObservedStream> {
  const events: LiveEvent[] = [];
  const timed: TimedEvent[] = [];
  const pushMs: number[] = [];
  const snapshotBytes: number[] = [];
  for (let at = 0; at < samples.length; at += FRAME_SAMPLES) {
    const frame = new Float32Array(FRAME_SAMPLES); // the last frame is padded, as by a client
    frame.set(samples.subarray(at, at + FRAME_SAMPLES));
    const from = process.cpuUsage();
    const returned = await session.push(frame);
    const { user, system } = process.cpuUsage(from);
    const computeMs = (user + system) / 1000;
    const streamSeconds = (at + FRAME_SAMPLES) / SAMPLE_RATE_HZ;
    timed.push(
      ...returned
        .filter((event) => event.kind !== 'correction')
        .map((event) => ({ ...event, push: pushMs.length, streamSeconds, computeMs })),
    );
    events.push(...returned);
    pushMs.push(computeMs);
    if (pushMs.length % FRAMES_PER_MINUTE === 0) snapshotBytes.push(session.snapshot().length);
  }
  snapshotBytes.push(session.snapshot().length);
  events.push(...(await session.finish()));
  return {
    audioSeconds: samples.length / SAMPLE_RATE_HZ,
    found: segmentsFromTurns(collectTurns<number>(events.filter(({ kind }) => kind !== 'correction'))),
    corrected: segmentsFromTurns(collectTurns<number>(events)),
    events: timed,
    pushMs,
    snapshotBytes,
  };
}
