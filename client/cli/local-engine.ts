import { TRANSCRIPTION_MODELS } from '../../src/contract/languages.ts';

/** Default port of `npm run asr`. */
export const ASR_PORT = 8791;
/** The engine of `npm run asr`, in the form of `ROLLCALL_ASR_URL`. */
const LOCAL_ENGINE_URL = `http://127.0.0.1:${ASR_PORT}/v1`;
/** An engine on this machine answers within milliseconds. */
const PROBE_MS = 300;

/**
 * Makes services that are started later use the engine of `npm run asr`, if it runs. Does not change a
 * `ROLLCALL_ASR_URL` that is set, also if it is empty, which means no engine.
 *
 * @returns the engine's address, undefined if it is not used
 */
export async function useLocalEngine(address = LOCAL_ENGINE_URL): Promise<string | undefined> {
  if (process.env.ROLLCALL_ASR_URL !== undefined || !(await answers(address))) return undefined;
  process.env.ROLLCALL_ASR_URL = address;
  return address;
}

/** Whether the program on this port, if any, is an engine with the models of this service. */
async function answers(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/models`, { signal: AbortSignal.timeout(PROBE_MS) });
    const list = (await response.json()) as { data?: { id?: unknown }[] };
    return response.ok && TRANSCRIPTION_MODELS.every((model) => list.data?.some(({ id }) => id === model));
  } catch {
    return false;
  }
}
