import { Pool } from 'undici';
import { percentile } from '../load.ts';

const EVERY_MS = 200;
/** How undici says that the other side closed a connection that was idle. */
const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const HEADERS_TIMEOUT_MS = 300_000;

/**
 * Sends `GET /v1/test` every 200 ms, whether the one before was answered or not, so that a time of silence counts
 * with every request in it.
 *
 * @returns ends it and gives the time of every answer, in milliseconds
 */
export function sampleLatency({ url, key }: { readonly url: string; readonly key: string }): () => Promise<number[]> {
  const pool = new Pool(url, { connections: 64, pipelining: 1, headersTimeout: HEADERS_TIMEOUT_MS });
  const latenciesMs: number[] = [];
  const answers = new Set<Promise<void>>();
  const faults: unknown[] = [];
  const ask = async (isFirst = true): Promise<void> => {
    try {
      const headers = { Authorization: `Bearer ${key}` };
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/v1/test', headers });
      await body.text();
      if (statusCode !== 200) throw new Error(`GET /v1/test answered ${statusCode}`);
    } catch (error) {
      if (!isFirst || !CLOSED.has((error as { code?: string }).code ?? '')) throw error;
      await ask(false);
    }
  };
  const timer = setInterval(() => {
    const from = performance.now();
    const answer = ask().then(
      () => void latenciesMs.push(performance.now() - from),
      (error: unknown) => void faults.push(error),
    );
    answers.add(answer);
    void answer.finally(() => answers.delete(answer));
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(answers);
    await pool.destroy();
    if (faults.length > 0) throw faults[0];
    return latenciesMs;
  };
}

/** p50, p99 and the longest, for a table. */
export function latencyCells(latenciesMs: readonly number[]): string[] {
  if (latenciesMs.length === 0) return ['–', '–', '–'];
  const longest = Math.max(...latenciesMs);
  return [percentile(latenciesMs, 0.5), percentile(latenciesMs, 0.99), longest].map((ms) => `${ms.toFixed(0)} ms`);
}
