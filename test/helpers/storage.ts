import type { Statement, StatementsRequest, StatementsResponse } from '../workers/storage.worker.ts';
import { migrate } from './database.ts';
import { startTestWorker } from './workerd.ts';

export type Storage = Awaited<ReturnType<typeof startRuntime>>;

/** Test files of one process share a runtime. It ends with the process. */
let shared: Promise<Storage> | undefined;

/**
 * A real D1 database with all migrations, a real R2 bucket and queues without consumers, in workerd's memory. Test
 * files share it: it is empty when a file calls this.
 */
export async function startStorage(): Promise<Storage> {
  // Vitest ends a worker by a signal. Miniflare ends its runtime when the process exits.
  if (!shared) process.once('SIGTERM', () => process.exit());
  shared ??= startRuntime();
  const storage = await shared;
  await storage.empty();
  return { ...storage, stop: async () => undefined };
}

/** Storage whose database lacks the migration `before` and all later ones. The caller must stop it. */
export const startStorageBefore = (before: string): Promise<Storage> => startRuntime(before);

async function startRuntime(before?: string) {
  const miniflare = await startTestWorker('storage', {
    d1Databases: ['DB'],
    r2Buckets: ['BUCKET'],
    queueProducers: ['INGEST', 'JOBS', 'PRIORITY', 'TRANSCRIPTS', 'WEBHOOKS'],
  });
  const bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  const { webSocket } = await miniflare.dispatchFetch('http://storage/', { headers: { Upgrade: 'websocket' } });
  if (!webSocket) throw new Error('the storage Worker accepted no WebSocket');
  webSocket.accept();
  const pending = new Map<number, (response: StatementsResponse) => void>();
  webSocket.addEventListener('message', ({ data }) => {
    const response = JSON.parse(String(data)) as StatementsResponse;
    pending.get(response.id)?.(response);
    pending.delete(response.id);
  });
  let requests = 0;
  const counts = { statements: 0 };
  const db = databaseOver(async (statements) => {
    counts.statements += statements.length;
    const request: StatementsRequest = { id: requests++, statements };
    const response = await new Promise<StatementsResponse>((done) => {
      pending.set(request.id, done);
      webSocket.send(JSON.stringify(request));
    });
    if (response.error !== undefined) throw new Error(response.error);
    return response.results ?? [];
  });
  await migrate(db, { before });
  const queue = async (name: string) => [(await miniflare.getQueueProducer(name)) as unknown as Queue<unknown>];

  return {
    db,
    bucket,
    queues: {
      ingest: await queue('INGEST'),
      jobs: await queue('JOBS'),
      priority: await queue('PRIORITY'),
      transcripts: await queue('TRANSCRIPTS'),
      webhooks: await queue('WEBHOOKS'),
    },
    /** Statements that the database has run. */
    counts,
    /** Writes many small objects with one request. */
    async putAll(keys: readonly string[]): Promise<void> {
      await miniflare.dispatchFetch('http://storage/', { method: 'POST', body: JSON.stringify(keys) });
    },
    async empty(): Promise<void> {
      const { results } = await db
        .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'`)
        .all<{ name: string }>();
      const deletions = results.map(({ name }) => db.prepare(`DELETE FROM ${name}`));
      await db.batch([db.prepare('PRAGMA defer_foreign_keys = on'), ...deletions]);
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

/** The part of D1's interface that the service uses; the rest is missing, so that its use throws a TypeError. */
function databaseOver(run: (statements: readonly Statement[]) => Promise<D1Result<unknown>[]>): D1Database {
  const prepare = (sql: string, args: readonly unknown[] = []) => {
    const first = async (column?: string) => {
      const row = (await run([{ sql, args }]))[0]?.results[0] as Record<string, unknown> | undefined;
      return (column === undefined ? row : row?.[column]) ?? null;
    };
    return {
      sql,
      args,
      bind(...values: unknown[]) {
        // D1 refuses undefined; JSON would turn it into null.
        if (values.includes(undefined)) throw new Error(`undefined is bound in ${sql}`);
        return prepare(sql, values);
      },
      run: async () => (await run([{ sql, args }]))[0],
      all: async () => (await run([{ sql, args }]))[0],
      first,
    };
  };
  const batch = (statements: readonly Statement[]) => run(statements.map(({ sql, args }) => ({ sql, args })));
  return { prepare: (sql: string) => prepare(sql), batch } as unknown as D1Database;
}
