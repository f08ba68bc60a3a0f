import type { Env } from './env.ts';
import type { LiveTimes } from './jobs/live/limits.ts';
import { LiveLoad } from './jobs/live/load.ts';
import type { LiveSessions, LiveStore, StreamTokens } from './jobs/live/ports.ts';
import type { JobPorts, Log } from './jobs/ports.ts';
import { createLiveSession, restoreLiveSession } from './live/index.ts';
import type { LiveEngine } from './live/types.ts';
import { createLiveStore } from './platform/d1/live-store.ts';
import { jobPorts, liveTimes, streamTokens } from './services.ts';

/** What a stream's object works with. */
export interface LiveRuntime {
  readonly store: LiveStore;
  readonly sessions: LiveSessions;
  readonly resampler: ReturnType<JobPorts['codecs']>['resampler'];
  readonly times: LiveTimes;
  readonly tokens: StreamTokens;
  readonly load: LiveLoad;
  readonly log: Log;
}

/** Of all streams of this isolate. */
const load = new LiveLoad();

/** The parts of a live stream over this Worker's bindings. */
export function liveRuntime(env: Env): LiveRuntime {
  const ports = jobPorts(env);
  return {
    store: createLiveStore(env.DB),
    sessions: liveSessions(ports),
    resampler: ports.codecs().resampler,
    times: liveTimes(env),
    tokens: streamTokens(env),
    load,
    log: ports.log,
  };
}

function liveSessions(ports: JobPorts): LiveSessions {
  return {
    async create(settings) {
      const engine = await liveEngine(ports);
      const { id } = engine.embedding.info;
      // They were checked when the stream was made; the models may have been changed since.
      if (settings.voices.some(({ voice }) => voice.embeddingId !== id))
        throw new Error(`a voiceprint is not of ${id}`);
      return createLiveSession(engine, settings, ports.pause);
    },
    restore: async (snapshot) => restoreLiveSession(await liveEngine(ports), snapshot, ports.pause),
  };
}

async function liveEngine(ports: JobPorts): Promise<LiveEngine> {
  const engine = await ports.engine();
  const { id } = engine.embedding.info;
  return { ...engine, plda: await ports.plda(id), identification: ports.identification(id) };
}
