import { RollingSession } from './session.ts';
import { modelsOf, unpackState } from './snapshot.ts';
import type { LiveEngine, LiveSession, LiveSettings } from './types.ts';

export * from './types.ts';

const noPause = async (): Promise<void> => undefined;

/** Begins the diarization of a stream. See `LiveSession`. */
export function createLiveSession(
  engine: LiveEngine,
  settings: LiveSettings,
  pause: () => Promise<void> = noPause,
): LiveSession {
  return new RollingSession(engine, settings, pause);
}

/**
 * Goes on with a stream where `snapshot` was taken.
 * @throws when the snapshot was taken with other models or by another version
 */
export function restoreLiveSession(
  engine: LiveEngine,
  snapshot: Uint8Array,
  pause: () => Promise<void> = noPause,
): LiveSession {
  const { state, models } = unpackState(snapshot);
  if (models !== modelsOf(engine)) throw new Error(`the snapshot is of ${models}, not of ${modelsOf(engine)}`);
  const session = new RollingSession(engine, state.settings, pause);
  session.restore(state);
  return session;
}
