import type { ResamplerPort } from './audio/audio-ports.ts';
import { type LiveConfig, type LiveEnv, readLiveConfig } from './env.ts';
import type { Log } from './jobs/job-ports.ts';
import { LiveLoad } from './jobs/live-load.ts';
import type { LiveSessions, LiveStore, LiveTimes, StreamTokens } from './jobs/live-ports.ts';
import type { LiveEngine } from './live/live-session.ts';
import { createLiveSession, restoreLiveSession } from './live/rolling-session.ts';
import { createLiveStore } from './platform/d1/live-store.ts';
import { yieldOnce } from './platform/event-loop.ts';
import { log } from './platform/log.ts';
import { createStreamTokens } from './platform/signed-tokens.ts';
import { inference, resampler } from './services-inference.ts';

/** Services of a stream's object. */
export interface LiveRuntime {
  readonly store: LiveStore;
  readonly sessions: LiveSessions;
  readonly resampler: ResamplerPort;
  readonly times: LiveTimes;
  readonly tokens: StreamTokens;
  readonly load: LiveLoad;
  readonly log: Log;
}

/** Load by all streams of this isolate. */
const load = new LiveLoad();

/** The services of live streams over this Worker's bindings. */
export function liveRuntime(env: LiveEnv): LiveRuntime {
  config ??= readLiveConfig(env);
  return {
    store: createLiveStore(env.DB),
    sessions: liveSessions(inference(env.BUCKET, yieldOnce)),
    resampler: resampler(),
    times: config.live,
    tokens: createStreamTokens(config),
    load,
    log,
  };
}

let config: LiveConfig | undefined;

type Inference = ReturnType<typeof inference>;

function liveSessions(ports: Inference): LiveSessions {
  return {
    async create(settings) {
      const engine = await liveEngine(ports);
      const { id } = engine.embedding.info;
      // The voiceprints were checked when the stream was created; the models may have changed since.
      if (settings.voices.some(({ voice }) => voice.embeddingId !== id))
        throw new Error(`a voiceprint is not of ${id}`);
      return createLiveSession(engine, settings, yieldOnce);
    },
    restore: async (snapshot) => restoreLiveSession(await liveEngine(ports), snapshot, yieldOnce),
  };
}

async function liveEngine(ports: Inference): Promise<LiveEngine> {
  const engine = await ports.engine('community-1');
  const { id } = engine.embedding.info;
  return { ...engine, plda: await ports.plda(id), identification: ports.identification(id) };
}
