import { Miniflare } from '../../client/local/miniflare.ts';
import { migrate } from '../helpers/database.ts';

/**
 * Real D1 and R2 in workerd, as `startStorage` of the helpers, for tests with thousands of statements. Miniflare's
 * proxy of D1 makes a blocking call to workerd for every `prepare` and `bind`, which takes three quarters of a
 * simulation's time. Here each statement is one message over an open WebSocket.
 */
export async function startFastStorage() {
  const miniflare = new Miniflare({
    modules: true,
    script: DATABASE_WORKER,
    d1Databases: ['DB'],
    r2Buckets: ['BUCKET'],
    cf: false,
  });
  const bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  const { webSocket } = await miniflare.dispatchFetch('http://database/', { headers: { Upgrade: 'websocket' } });
  if (!webSocket) throw new Error('the database accepted no connection');
  webSocket.accept();
  const pending = new Map<number, (answer: Answer) => void>();
  webSocket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    pending.get(answer.id)?.(answer);
    pending.delete(answer.id);
  });
  let nextId = 0;
  const counts = { statements: 0 };
  const db = databaseOver(async (statements) => {
    counts.statements += statements.length;
    const id = nextId++;
    const answer = await new Promise<Answer>((done) => {
      pending.set(id, done);
      webSocket.send(JSON.stringify({ id, statements }));
    });
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.results ?? [];
  });
  await migrate(db);

  return {
    db,
    bucket,
    /** Number of executed statements. */
    counts,
    async empty(tables: readonly string[]): Promise<void> {
      await db.batch(tables.map((table) => db.prepare(`DELETE FROM ${table}`)));
      for (;;) {
        const { objects } = await bucket.list();
        if (objects.length === 0) return;
        await bucket.delete(objects.map(({ key }) => key));
      }
    },
    async stop(): Promise<void> {
      const isClosed = new Promise((done) => webSocket.addEventListener('close', done));
      webSocket.close();
      await isClosed;
      await miniflare.dispose();
    },
  };
}

export type Storage = Awaited<ReturnType<typeof startFastStorage>>;

interface Answer {
  readonly id: number;
  readonly results?: D1Result<unknown>[];
  readonly error?: string;
}

interface Statement {
  readonly sql: string;
  readonly args: readonly unknown[];
}

/** Runs every request as a batch: for one statement this equals a plain execution. */
const DATABASE_WORKER = `export default {
  fetch(_request, { DB }) {
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener('message', async ({ data }) => {
      const { id, statements } = JSON.parse(data);
      try {
        const results = await DB.batch(statements.map(({ sql, args }) => DB.prepare(sql).bind(...args)));
        server.send(JSON.stringify({ id, results }));
      } catch (error) {
        server.send(JSON.stringify({ id, error: String(error) }));
      }
    });
    server.addEventListener('close', () => server.close());
    return new Response(null, { status: 101, webSocket: client });
  },
};`;

/** The part of D1's interface that the service uses. */
function databaseOver(execute: (statements: readonly Statement[]) => Promise<D1Result<unknown>[]>): D1Database {
  const prepare = (sql: string, args: readonly unknown[] = []) => ({
    sql,
    args,
    bind(...values: unknown[]) {
      // D1 refuses undefined, which JSON would turn into null.
      if (values.includes(undefined)) throw new Error(`undefined is bound in ${sql}`);
      return prepare(sql, values);
    },
    run: async () => (await execute([{ sql, args }]))[0],
    all: async () => (await execute([{ sql, args }]))[0],
    first: async () => (await execute([{ sql, args }]))[0]?.results[0] ?? null,
  });
  const batch = (statements: readonly Statement[]) => execute(statements.map(({ sql, args }) => ({ sql, args })));
  // Calls of other methods throw a TypeError.
  return { prepare: (sql: string) => prepare(sql), batch } as unknown as D1Database;
}
