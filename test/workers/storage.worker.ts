/*
 * Runs what the tests ask of a real D1 database and R2 bucket. One message carries a whole batch of statements, and one
 * request all keys to write: Miniflare's proxy goes to workerd for every `prepare` and `bind`, and blocks the test
 * meanwhile.
 */

interface Bindings {
  readonly DB: D1Database;
  readonly BUCKET: R2Bucket;
}

export interface Statement {
  readonly sql: string;
  readonly args: readonly unknown[];
}

export interface StatementsRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
}

export interface StatementsResponse {
  readonly id: number;
  readonly results?: D1Result<unknown>[];
  readonly error?: string;
}

/** A batch of one statement is one transaction, as the statement alone would be. */
async function runStatements(db: D1Database, { id, statements }: StatementsRequest): Promise<StatementsResponse> {
  try {
    return { id, results: await db.batch(statements.map(({ sql, args }) => db.prepare(sql).bind(...args))) };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}

export default {
  /** A WebSocket of statements; or a POST of a JSON array of keys, which writes an object under each. */
  async fetch(request: Request, { DB, BUCKET }: Bindings): Promise<Response> {
    if (request.method === 'POST') {
      const keys = (await request.json()) as string[];
      await Promise.all(keys.map((key) => BUCKET.put(key, 'x')));
      return new Response();
    }
    const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    server.accept();
    server.addEventListener('message', async ({ data }) => {
      server.send(JSON.stringify(await runStatements(DB, JSON.parse(String(data)) as StatementsRequest)));
    });
    server.addEventListener('close', () => server.close());
    return new Response(null, { status: 101, webSocket: client });
  },
};
