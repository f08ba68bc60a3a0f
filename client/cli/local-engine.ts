import { TRANSCRIPTION_MODELS } from '../../src/contract/languages.ts';

/** Default port of `npm run asr`. */
export const ASR_PORT = 8791;
/** Address of the engine of `npm run asr`, in the form of `ROLLCALL_ASR_URL`. */
const LOCAL_ENGINE_URL = `http://127.0.0.1:${ASR_PORT}/v1`;
/** Timeout: an engine on this machine answers within milliseconds. */
const PROBE_MS = 300;

/**
 * Makes services that start later use the engine of `npm run asr`, if it runs. Does not change a `ROLLCALL_ASR_URL`
 * that is set, even to an empty value, which means no engine.
 *
 * @returns the engine's address; undefined if it is not used
 */
export async function useLocalEngine(address = LOCAL_ENGINE_URL): Promise<string | undefined> {
  if (process.env.ROLLCALL_ASR_URL !== undefined || !(await hasModels(address))) return undefined;
  process.env.ROLLCALL_ASR_URL = address;
  return address;
}

/** Whether an engine with the models of this service answers at this address. */
async function hasModels(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/models`, { signal: AbortSignal.timeout(PROBE_MS) });
    const list = (await response.json()) as { data?: { id?: unknown }[] };
    return response.ok && TRANSCRIPTION_MODELS.every((model) => list.data?.some(({ id }) => id === model));
  } catch {
    return false;
  }
}
