import { MAX_SPEAKERS } from '../../src/contract/live-limits.ts';
import type { Engine } from '../../src/jobs/job-ports.ts';
import { createLiveSession, type LiveEngine, type LiveSession } from '../../src/live/index.ts';
import { DEFAULT_IDENTIFICATION } from '../../src/voiceprint/index.ts';
import { nodeEngine } from '../node-engine.ts';
import { type MeasuredPack, pldaOf } from '../packs.ts';

/** Latencies that are measured, milliseconds. */
export const LATENCIES_MS = [500, 1000, 2000] as const;

/** The service's engine, with what live streams need of it besides, in this process. */
export async function liveEngine(pack: MeasuredPack): Promise<Engine & LiveEngine> {
  const identification = pack.pack.embedding.identification ?? DEFAULT_IDENTIFICATION;
  return { ...(await nodeEngine(pack)), plda: pldaOf(pack), identification };
}

/** A stream as a plain client opens it, but for its latency and for corrections, which change no start and no end. */
export function openSession(engine: LiveEngine, latencyMs: number): LiveSession {
  return createLiveSession(engine, { latencyMs, maxSpeakers: MAX_SPEAKERS, voices: [], corrections: true });
}
