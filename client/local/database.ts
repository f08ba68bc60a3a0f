import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { D1Database } from '@cloudflare/workers-types';
import { pause } from '../sdk/pause.ts';
import { API } from '../workers.ts';
import { readBindings } from './bundle.ts';
import { applyMigrations } from './migrations.ts';
import { claimState, forgetOwner, runningOwner } from './owner.ts';
import { LocalStateError, persistDir } from './paths.ts';
import { withoutSignalHandlers } from './process-globals.ts';
import { checkWorkerd } from './workerd-program.ts';

export type SqlValue = string | number | null;
export type SqlRow = Record<string, SqlValue>;

/** Runs one statement and returns its rows; the caller states their type. */
export type RunSql = <Row = SqlRow>(sql: string, ...params: SqlValue[]) => Promise<Row[]>;

/** Runs statements on a database that this process has open. */
export function runSqlOn(db: D1Database): RunSql {
  return async <Row>(sql: string, ...params: SqlValue[]) =>
    (
      await db
        .prepare(sql)
        .bind(...params)
        .all<Row>()
    ).results;
}

/**
 * Opens the database of a state folder for a command such as `npm run key`. While the service runs, the statements go
 * through its process: a second writer on the files would make the service's own writes fail as locked.
 *
 * @param options `creates` a missing state
 * @throws LocalStateError if the state is missing and `creates` is not set, or workerd does not run
 */
export async function openDatabase(
  stateDir: string,
  root: string,
  options: { readonly creates?: boolean } = {},
): Promise<{ run: RunSql; close(): Promise<void> }> {
  const owner = runningOwner(stateDir);
  if (owner && !owner.brief) return { run: await throughOwner(stateDir), close: async () => {} };
  if (!options.creates && !existsSync(persistDir(stateDir))) {
    const advice = process.env.ROLLCALL_STATE ? 'ROLLCALL_STATE names this folder.' : 'npm start creates it.';
    throw new LocalStateError(`There is no state of a service in ${stateDir}. ${advice}`);
  }

  await checkWorkerd();
  // Loaded here, because it takes a second and is not needed while a service runs.
  const { Log, LogLevel, Miniflare } = await import('./miniflare.ts');
  const port = await claimState(stateDir, 0, { brief: true });
  const { d1Databases } = await readBindings(root, API);
  const database = {
    modules: true,
    script: 'export default {}',
    cf: false,
    log: new Log(LogLevel.NONE),
    host: '127.0.0.1',
    port,
    d1Databases,
    d1Persist: join(persistDir(stateDir), 'd1'),
  };
  const miniflare = await withoutSignalHandlers(() => new Miniflare(database));
  const close = async (): Promise<void> => {
    await miniflare.dispose();
    forgetOwner(stateDir);
  };
  try {
    // Miniflare declares the experimental version of these types.
    const db = (await miniflare.getD1Database('DB')) as unknown as D1Database;
    await applyMigrations(db, join(root, 'migrations'));
    return { run: runSqlOn(db), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs statements in the owner's process. Waits for its address, because it may be starting. */
async function throughOwner(stateDir: string): Promise<RunSql> {
  const deadline = Date.now() + 30_000;
  let control = runningOwner(stateDir)?.control;
  while (!control && runningOwner(stateDir) && Date.now() < deadline) {
    await pause(100);
    control = runningOwner(stateDir)?.control;
  }
  if (!control) throw new Error(`The service on ${stateDir} does not answer.`);
  const { url, token } = control;
  return async <Row>(sql: string, ...params: SqlValue[]) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify({ sql, params }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as Row[];
  };
}

/**
 * Serves the database of a running service to other commands of this user. The token is in the owner file, which only
 * this user can read.
 */
export function serveDatabase(run: RunSql): Promise<{ url: string; token: string; close(): void }> {
  const token = randomBytes(32).toString('hex');
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(`Bearer ${token}`);
  const server: Server = createServer(async (request, response) => {
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) {
      response.writeHead(401).end();
      return;
    }
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { sql, params } = JSON.parse(Buffer.concat(chunks).toString()) as { sql: string; params: SqlValue[] };
      response.end(JSON.stringify(await run(sql, ...params)));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    }
  });
  return new Promise((done, refuse) => {
    server.once('error', refuse);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.unref();
      const close = (): void => {
        server.close();
        server.closeAllConnections();
      };
      done({ url: `http://127.0.0.1:${port}/`, token, close });
    });
  });
}
