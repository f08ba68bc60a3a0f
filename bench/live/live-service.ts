import { existsSync, readFileSync } from 'node:fs';
import { nodeWebSocket } from '../../client/live/node.ts';
import { openLiveStream } from '../../client/live/open.ts';
import type { LiveClose } from '../../client/live/types.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { SAMPLE_RATE_HZ } from '../../src/audio/audio-ports.ts';
import { BenchService } from '../bench-service.ts';
import { percentile } from '../load.ts';
import type { LabelledRecording } from '../recordings.ts';
import { logProgress } from '../shared.ts';
import { FRAME_SAMPLES } from './observe.ts';

/** An account may have ten streams at once. */
const STREAMS = [1, 2, 4, 6, 8] as const;
const SECONDS = 40;
const FRAME_MS = 100;

/** Concurrent streams through the real service. */
export interface ServiceResult {
  readonly streams: number;
  readonly events: number;
  /** From an event's timestamp, with audio sent in real time, until the client receives it. */
  readonly medianMs: number;
  readonly p95Ms: number;
  /** CPU time of workerd for a second of audio of one stream; undefined without /proc. */
  readonly cpuMs: number | undefined;
  /** Why streams failed, an entry for each. */
  readonly failures: readonly string[];
}

/**
 * Measures concurrent WebSocket streams through workerd in real time.
 *
 * @returns undefined where the service has no live endpoint
 */
export async function measureService(
  recordings: readonly LabelledRecording[],
  latencyMs: number,
  maxSeconds: number,
): Promise<ServiceResult[] | undefined> {
  const seconds = Math.min(SECONDS, maxSeconds);
  const service = await BenchService.start();
  try {
    await service.raiseLimits();
    const client = new RollcallClient({ url: service.url, key: service.key });
    const created = await client.createLive();
    if (!created.ok && created.error.kind === 'refused' && created.error.status === 404) return undefined;
    const long = recordings.filter(({ samples }) => samples.length >= seconds * SAMPLE_RATE_HZ);
    if (long.length === 0) return undefined;
    logProgress('warming the live service up');
    await stream(client, long[0].samples.subarray(0, 5 * SAMPLE_RATE_HZ), latencyMs, 0);
    const results: ServiceResult[] = [];
    for (const streams of STREAMS) {
      logProgress(`${streams} streams through the service for ${seconds} s`);
      const cpuBefore = cpuMsOf(service.workerdPid());
      const runs = await Promise.all(
        Array.from({ length: streams }, (_, index) => {
          const { samples } = long[index % long.length];
          const opening = samples.subarray(0, seconds * SAMPLE_RATE_HZ);
          return stream(client, opening, latencyMs, (index * FRAME_MS) / streams);
        }),
      );
      const cpuAfter = cpuMsOf(service.workerdPid());
      const sentSeconds = runs.reduce((total, run) => total + run.sentSeconds, 0);
      const delays = runs.flatMap((run) => run.delaysMs);
      results.push({
        streams,
        events: delays.length,
        medianMs: delays.length > 0 ? percentile(delays, 0.5) : Number.NaN,
        p95Ms: delays.length > 0 ? percentile(delays, 0.95) : Number.NaN,
        cpuMs: cpuBefore === undefined || cpuAfter === undefined ? undefined : (cpuAfter - cpuBefore) / sentSeconds,
        failures: runs.flatMap(({ failure }) => failure ?? []),
      });
    }
    return results;
  } finally {
    await service.stop();
  }
}

interface Run {
  readonly delaysMs: readonly number[];
  readonly sentSeconds: number;
  readonly failure: string | undefined;
}

/** @param afterMs delay of the first frame, which spreads the frames of several streams evenly */
async function stream(client: RollcallClient, samples: Float32Array, latencyMs: number, afterMs: number): Promise<Run> {
  const opened = await openLiveStream(client, { latency: latencyMs, webSocket: nodeWebSocket });
  if (!opened.ok) return { delaysMs: [], sentSeconds: 0, failure: opened.error.message };
  const live = opened.value;
  const startedAt = performance.now() + afterMs;
  let ending = false;
  const delaysMs: number[] = [];
  const listening = (async () => {
    for await (const event of live) {
      // Events that the end of the stream brings come without look-ahead: they are not measured.
      if ((event.kind === 'start' || event.kind === 'end') && !ending) {
        delaysMs.push(performance.now() - startedAt - 1000 * event.timestampSeconds);
      }
    }
  })();
  for (let at = 0; at < samples.length; at += FRAME_SAMPLES) {
    // A frame is sent when its last sample has been spoken.
    const dueMs = startedAt + (1000 * (at + FRAME_SAMPLES)) / SAMPLE_RATE_HZ - performance.now();
    if (dueMs > 0) await new Promise((wake) => setTimeout(wake, dueMs));
    await live.write(samples.subarray(at, at + FRAME_SAMPLES));
  }
  ending = true;
  const close = await live.end();
  await listening;
  return { delaysMs, sentSeconds: live.sentSeconds, failure: failureOf(close) };
}

function failureOf(close: LiveClose): string | undefined {
  if (close.kind === 'done') return undefined;
  return 'message' in close ? `${close.kind}: ${close.message}` : close.kind;
}

/** Ticks of /proc are hundredths of a second on every Linux that Node runs on. */
const TICK_MS = 10;

/** CPU time of a process; undefined without /proc. */
function cpuMsOf(pid: number | undefined): number | undefined {
  const path = `/proc/${pid}/stat`;
  if (pid === undefined || !existsSync(path)) return undefined;
  const fields = readFileSync(path, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return TICK_MS * (Number(fields[11]) + Number(fields[12]));
}
