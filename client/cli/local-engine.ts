import { TRANSCRIPTION_MODELS } from '../../src/contract/languages.ts';

/** Where `npm run asr` listens. */
export const ASR_PORT = 8791;
/** The engine of `npm run asr`, as `ROLLCALL_ASR_URL` names it. */
const LOCAL_ENGINE_URL = `http://127.0.0.1:${ASR_PORT}/v1`;
/** An engine on this machine answers within milliseconds. */
const PROBE_MS = 300;

/**
 * Makes the engine of `npm run asr`, if it runs, the one of a service that is started after this. A `ROLLCALL_ASR_URL`
 * that is set stays as it is: the empty one asks for no engine.
 *
 * @returns the engine's address where it is used
 */
export async function useLocalEngine(address = LOCAL_ENGINE_URL): Promise<string | undefined> {
  if (process.env.ROLLCALL_ASR_URL !== undefined || !(await answers(address))) return undefined;
  process.env.ROLLCALL_ASR_URL = address;
  return address;
}

/** Whether an engine with the models of this service listens: any program may have the port. */
async function answers(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/models`, { signal: AbortSignal.timeout(PROBE_MS) });
    const list = (await response.json()) as { data?: { id?: unknown }[] };
    return response.ok && TRANSCRIPTION_MODELS.every((model) => list.data?.some(({ id }) => id === model));
  } catch {
    return false;
  }
}
