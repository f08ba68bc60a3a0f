import { RollcallClient } from '../sdk/client.ts';
import { pause } from '../sdk/pause.ts';

export interface SmokeTest {
  /** Address of the service, without `/v1`. */
  readonly address: string;
  /** Key of an account with a subscription or credit. */
  readonly key: string;
  /** An MP3 of at least two speakers. */
  readonly recording: Uint8Array;
  /** Longest wait for the first answer of a new address, and for the job. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 180_000;
const PAUSE_MS = 2000;

/**
 * Checks that a deployed service answers, accepts the key, and finds the speakers of a recording.
 *
 * @returns a sentence with the result
 * @throws if a check fails
 */
export async function smokeTest({ address, key, recording, patienceMs = PATIENCE_MS }: SmokeTest): Promise<string> {
  await untilHealthy(address, Date.now() + patienceMs);
  const client = new RollcallClient({ url: address, key });
  const tested = await client.test();
  if (!tested.ok) throw new Error(`GET /v1/test: ${tested.error.message}`);
  const url = `data:audio/mpeg;base64,${Buffer.from(recording).toString('base64')}`;
  const created = await client.diarize({ url, model: 'community-1' });
  if (!created.ok) throw new Error(`POST /v1/diarize: ${created.error.message}`);
  const { jobId } = created.value;
  const startedAt = Date.now();
  const job = await client.wait(jobId, { signal: AbortSignal.timeout(patienceMs) });
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  await client.remove(jobId);
  if (!job.ok) throw new Error(`GET /v1/jobs/{jobId}: ${job.error.message}`);
  const { status, output } = job.value;
  if (status !== 'succeeded')
    throw new Error(`a job is ${status} after ${seconds} s: ${JSON.stringify(output ?? null)}`);
  const speakers = new Set(
    (output as { diarization: { speaker: string }[] }).diarization.map(({ speaker }) => speaker),
  );
  if (speakers.size < 2) throw new Error(`a conversation has ${speakers.size} speakers`);
  return `found the ${speakers.size} speakers of a conversation in ${seconds} s`;
}

async function untilHealthy(address: string, until: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`${address}/healthz`, { signal: AbortSignal.timeout(30_000) }).catch((error) => error);
    if (answer instanceof Response && answer.ok) return;
    if (Date.now() > until) {
      throw new Error(`GET /healthz: ${answer instanceof Response ? `status ${answer.status}` : String(answer)}`);
    }
    await pause(PAUSE_MS);
  }
}
