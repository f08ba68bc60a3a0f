import { Pool } from 'undici';

export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Result of a run of concurrent clients. */
export interface LoadResult {
  /** Time of every answer, in the order of their arrival. */
  readonly latenciesMs: readonly number[];
  readonly seconds: number;
}

/** undici's code for a connection closed by the peer. */
const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * Repeats one request from concurrent clients; each waits for its answer, body included, before it sends the next.
 * @param origin of the service
 * @throws Error for an answer that is not 2xx
 */
export async function load(
  origin: string,
  request: LoadRequest,
  { clients, seconds }: { readonly clients: number; readonly seconds: number },
): Promise<LoadResult> {
  const pool = new Pool(origin, { connections: clients, pipelining: 1 });
  const latenciesMs: number[] = [];
  const begun = performance.now();
  const end = begun + seconds * 1000;
  let reconnects = 0;
  /** Repeats a request whose kept connection the server closed at that moment (seen on a busy machine). */
  const ask = async (): Promise<{ statusCode: number; text: string }> => {
    try {
      const { statusCode, body } = await pool.request(request);
      return { statusCode, text: await body.text() };
    } catch (error) {
      if (!CLOSED.has((error as { code?: string }).code ?? '') || ++reconnects > clients) throw error;
      return ask();
    }
  };
  const client = async (): Promise<void> => {
    for (let from = performance.now(); from < end; from = performance.now()) {
      const { statusCode, text } = await ask();
      if (statusCode < 200 || statusCode > 299) {
        throw new Error(`${request.method} ${request.path} answered ${statusCode}: ${text.slice(0, 200)}`);
      }
      latenciesMs.push(performance.now() - from);
    }
  };
  try {
    await Promise.all(Array.from({ length: clients }, client));
    return { latenciesMs, seconds: (performance.now() - begun) / 1000 };
  } finally {
    await pool.destroy();
  }
}

/** Joins runs. */
export function together(results: readonly LoadResult[]): LoadResult {
  return {
    latenciesMs: results.flatMap(({ latenciesMs }) => latenciesMs),
    seconds: results.reduce((sum, { seconds }) => sum + seconds, 0),
  };
}

/** The value that `share` of the values do not exceed (nearest rank). */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('no value has no percentile');
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
