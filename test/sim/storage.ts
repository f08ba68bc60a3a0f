import { Miniflare } from '../../client/local/miniflare.ts';
import { migrate } from '../helpers/database.ts';

/**
 * As `startStorage` of the helpers, a real D1 and a real R2 in workerd, for tests that ask them thousands of times.
 * Miniflare's own stand-in for D1 goes to workerd and back for every `prepare` and `bind` and blocks the thread
 * meanwhile: three quarters of a simulation's time. Here a statement goes there whole, over one open connection.
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
  if (!webSocket) throw new Error('the database gave no connection');
  webSocket.accept();
  const waiting = new Map<number, (answer: Answer) => void>();
  webSocket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  let asked = 0;
  const counts = { statements: 0 };
  const db = databaseOver(async (statements) => {
    counts.statements += statements.length;
    const id = asked++;
    const answer = await new Promise<Answer>((done) => {
      waiting.set(id, done);
      webSocket.send(JSON.stringify({ id, statements }));
    });
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.results ?? [];
  });
  await migrate(db);

  return {
    db,
    bucket,
    /** Statements that the database was asked to run. */
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

/** Every request is a batch: one statement in a transaction of its own is what it is without one. */
const DATABASE_WORKER = `export default {
  fetch(_request, { DB }) {
    const [theirs, ours] = Object.values(new WebSocketPair());
    ours.accept();
    ours.addEventListener('message', async ({ data }) => {
      const { id, statements } = JSON.parse(data);
      try {
        const results = await DB.batch(statements.map(({ sql, args }) => DB.prepare(sql).bind(...args)));
        ours.send(JSON.stringify({ id, results }));
      } catch (error) {
        ours.send(JSON.stringify({ id, error: String(error) }));
      }
    });
    ours.addEventListener('close', () => ours.close());
    return new Response(null, { status: 101, webSocket: theirs });
  },
};`;

/** The part of D1's interface that the service uses. */
function databaseOver(ask: (statements: readonly Statement[]) => Promise<D1Result<unknown>[]>): D1Database {
  const prepare = (sql: string, args: readonly unknown[] = []) => ({
    sql,
    args,
    bind(...values: unknown[]) {
      // D1 refuses it, and JSON would make null of it.
      if (values.includes(undefined)) throw new Error(`undefined is bound in ${sql}`);
      return prepare(sql, values);
    },
    run: async () => (await ask([{ sql, args }]))[0],
    all: async () => (await ask([{ sql, args }]))[0],
    first: async () => (await ask([{ sql, args }]))[0]?.results[0] ?? null,
  });
  const batch = (statements: readonly Statement[]) => ask(statements.map(({ sql, args }) => ({ sql, args })));
  // The rest of the interface is not there: who calls it gets a TypeError.
  return { prepare: (sql: string) => prepare(sql), batch } as unknown as D1Database;
}
