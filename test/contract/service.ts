import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changeAccount } from '../../client/account-settings.ts';
import { createKey, ensureAccount } from '../../client/accounts.ts';
import { runSqlOn } from '../../client/local/database.ts';
import { type LocalService, startLocalService } from '../../client/local/service.ts';
import { SCOPES, type Scope } from '../../src/jobs/app-services.ts';

/** One answer of the service; `body` is the parsed JSON, undefined for an empty body. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface CallOptions {
  /** null sends no Authorization header; undefined sends the fixture's key. */
  readonly key?: string | null;
  /** An object is sent as JSON; bytes and streams are sent unchanged without a Content-Type. */
  readonly body?: object | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Record<string, string>;
}

export interface NewKey {
  readonly account?: string;
  readonly creditSeconds?: number;
  readonly subscribe?: boolean;
  /** Leaves the account at the service's default rate limits; most tests send more than those allow. */
  readonly defaultLimits?: boolean;
  readonly scopes?: readonly Scope[];
  readonly expiresAt?: number;
  readonly origins?: readonly string[];
}

/** Requests a minute, above what any test sends. */
const RAISED_LIMIT = 100_000;

interface StartedService {
  readonly stateDir: string;
  readonly service: LocalService;
  /** What the Workers have logged so far. */
  readonly log: () => string;
}

async function startService(vars: Record<string, string>): Promise<StartedService> {
  const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-contract-'));
  let log = '';
  const service = await startLocalService({ stateDir, vars, onLog: (text) => (log += text) });
  return { stateDir, service, log: () => log };
}

/** The service that test files of one process share; it ends with the process. */
let shared: Promise<StartedService> | undefined;
let mainAccounts = 0;

/** Vitest ends a worker by a signal; Miniflare ends its runtime when the process exits. */
function startSharedService(): Promise<StartedService> {
  process.once('SIGTERM', () => process.exit());
  return startService({});
}

/**
 * A real local service: the Worker in workerd with D1, R2, queues and Durable Objects, and an account with credit. The
 * tests call it over HTTP; they use the database only to create keys and jobs in states that take hours to reach. Test
 * files share it: ids of stored jobs and names of accounts must differ between files.
 *
 * @param vars variables of all Workers; starts a separate service
 */
export async function startContractService(vars?: Record<string, string>) {
  if (!vars) shared ??= startSharedService();
  const { stateDir, service, log } = await (vars ? startService(vars) : shared!);
  const logOffset = log().length;
  const mainAccount = `main-${++mainAccounts}`;
  const run = runSqlOn(service.db);

  const newKey = async (options: NewKey = {}) => {
    const {
      account: name = mainAccount,
      creditSeconds = 3600,
      subscribe,
      scopes = SCOPES,
      expiresAt,
      origins,
    } = options;
    const now = Date.now();
    const accountId = await ensureAccount(run, { name, creditSeconds, subscribe }, now);
    const limit = options.defaultLimits ? null : RAISED_LIMIT;
    await changeAccount(run, name, { postLimit: limit, getLimit: limit });
    const { keyId, token } = await createKey(
      run,
      { accountId, scopes, expiresAt, origins, signingKey: service.signingKey },
      now,
    );
    return { accountId, keyId, token };
  };
  const main = await newKey();

  const call = async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
    const { key = main.token, body, headers: extra } = options;
    const headers = new Headers(key === null ? {} : { Authorization: `Bearer ${key}` });
    // The service may close an idle connection while the client reuses it.
    headers.set('Connection', 'close');
    const isRaw = body instanceof Uint8Array || body instanceof ReadableStream;
    if (body && !isRaw) headers.set('Content-Type', 'application/json');
    for (const [name, value] of Object.entries(extra ?? {})) headers.set(name, value);
    const response = await fetch(path.startsWith('http') ? path : service.url + path, {
      method,
      headers,
      body: isRaw || body === undefined ? (body as BodyInit | undefined) : JSON.stringify(body),
      duplex: 'half',
    } as RequestInit);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  };

  return {
    url: service.url,
    stateDir,
    db: service.db,
    bucket: service.bucket,
    signingKey: service.signingKey,
    run,
    main: { ...main, account: mainAccount },
    runScheduled: service.runScheduled,
    newKey,
    call,
    /** What the Workers have logged since this call. */
    log: () => log().slice(logOffset),
    /** Cancels unfinished jobs of the file, or stops the service if it is not shared. */
    async stop() {
      if (!vars) {
        await run("UPDATE jobs SET status = 'canceled' WHERE status IN ('created', 'pending', 'running')");
        await run('DELETE FROM outbox');
        return;
      }
      await service.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
export type ContractService = Awaited<ReturnType<typeof startContractService>>;

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The fields named in a 400. */
export const faultyFields = (answer: Answer): string[] =>
  (answer.body.errors as { field: string }[]).map(({ field }) => field);

export const text = (content: string) => new TextEncoder().encode(content) as Uint8Array<ArrayBuffer>;
