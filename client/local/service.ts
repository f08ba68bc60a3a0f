import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { D1Database, R2Bucket } from '@cloudflare/workers-types';
import { bundleWorker } from './bundle.ts';
import { claimState } from './claim.ts';
import { runSqlOn, serveDatabase } from './database.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import { applyMigrations } from './migrations.ts';
import { Log, LogLevel, Miniflare, type WorkerOptions } from './miniflare.ts';
import { forgetOwner, recordOwner } from './owner.ts';
import { bundleCacheDir, persistDir, projectDir } from './paths.ts';
import { checkRuntime } from './runtime.ts';
import { runtimeLines } from './runtime-lines.ts';
import { loadSecrets } from './secrets.ts';
import { seedModels } from './seed.ts';
import { leavingSignalsAlone } from './signals.ts';
import { startAgain } from './start-again.ts';

/** Cron expression of wrangler.toml; local cron never fires by itself. */
const SWEEP_CRON = '*/5 * * * *';
const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** Tells the Worker that every message of the process before is lost. */
const BOOT_CRON = '@boot';

/**
 * Local queues hand out one batch at a time, and a local invocation may go on after its message was acknowledged: what waits for other people's
 * servers, copying their recordings included, goes on beside its queue.
 */
const LOCAL_VARS = { ALLOW_LOOPBACK: '1', QUEUE_PATIENCE_SECONDS: '1', COPY_SOURCES: '1' };
const LOCAL_FLAGS = ['queue_consumer_no_wait_for_wait_until'];

export interface LocalServiceOptions {
  /** Folder for the databases, objects, secrets and the log of this service. */
  readonly stateDir: string;
  /** 0 (the default) takes a free one. */
  readonly port?: number;
  /** Variables in place of those of wrangler.toml. */
  readonly vars?: Record<string, string>;
  /** Repository with wrangler.toml, migrations/ and models/; this one by default. */
  readonly root?: string;
  /** Opens workerd's inspector there, for measurements. */
  readonly inspectorPort?: number;
  /** Another Worker in the same workerd, for measurements: an ES module, and the route (`*` + path) under which it answers. */
  readonly beside?: { readonly script: string; readonly route: string };
  /** Gets what the Worker writes to its log, line by line as workerd prints it. */
  readonly onLog?: (text: string) => void;
  /** Something that a person should know, and in spite of which the service goes on; standard error by default. */
  readonly onWarning?: (message: string) => void;
  /** workerd ended by itself (crashed or was killed); the service is gone and can be started again. */
  readonly onDeath?: () => void;
}

export interface LocalService {
  /** Address without a trailing slash. */
  readonly url: string;
  readonly port: number;
  readonly signingKey: string;
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** Fires the Worker's scheduled handler and waits for it. */
  runScheduled(cron: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the whole service on this machine: the Worker in workerd with local D1, R2, Queues and Durable Objects.
 * A service that was killed before on the same state folder is cleaned up first, and its jobs go on.
 *
 * @throws LocalServiceBusy when another process has the port or the state folder, LocalStateError where workerd does not run
 */
export function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  return startAgain(() => startOnce(options));
}

async function startOnce(options: LocalServiceOptions): Promise<LocalService> {
  const root = options.root ?? projectDir;
  const stateDir = resolve(options.stateDir);
  const port = await claimState(stateDir, options.port ?? 0);

  const log = openLog(join(stateDir, 'service.log'), options);
  let stopped = false;
  const died = (): void => {
    // Ctrl-C reaches workerd as well as this process, and maybe first: then the end was asked for.
    setTimeout(() => {
      if (!stopped) options.onDeath?.();
      stopped = true;
    }, 300);
  };
  let miniflare: Miniflare | undefined;
  try {
    const { signingKey } = loadSecrets(stateDir);
    await checkRuntime();
    const worker = await bundleWorker(root, bundleCacheDir(root));
    const bindings = { ...worker.bindings, ...LOCAL_VARS, SIGNING_KEY: signingKey, ...options.vars };
    const compatibilityFlags = [...(worker.compatibilityFlags ?? []), ...LOCAL_FLAGS];
    const workerOptions = { ...worker, bindings, compatibilityFlags } as WorkerOptions;
    const shared = { inspectorPort: options.inspectorPort, ...sharedOptions(stateDir, port, log, died) };
    const workers = [workerOptions, ...besides(options)];
    miniflare = await leavingSignalsAlone(() => new Miniflare({ ...shared, workers }));
    await miniflare.ready;
    const service = await prepare(miniflare, { root, stateDir, port, signingKey, log });
    const stop = async (): Promise<void> => {
      stopped = true;
      await service.stop();
    };
    return { ...service, stop };
  } catch (error) {
    stopped = true;
    await miniflare?.dispose();
    log.close();
    forgetOwner(stateDir);
    throw error;
  }
}

function besides({ beside }: LocalServiceOptions): WorkerOptions[] {
  return beside ? [{ name: 'beside', modules: true, script: beside.script, routes: [beside.route] }] : [];
}

interface Prepared {
  readonly root: string;
  readonly stateDir: string;
  readonly port: number;
  readonly signingKey: string;
  readonly log: LogFile;
}

async function prepare(
  miniflare: Miniflare,
  { root, stateDir, port, signingKey, log }: Prepared,
): Promise<LocalService> {
  // Miniflare speaks of the experimental variant of these types.
  const db = (await miniflare.getD1Database('DB')) as unknown as D1Database;
  const bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  await applyMigrations(db, join(root, 'migrations'));
  await seedModels(bucket, root);
  const control = await serveDatabase(runSqlOn(db));
  recordOwner(stateDir, { port, control });

  const worker = await miniflare.getWorker();
  const runScheduled = async (cron: string): Promise<void> => {
    const { outcome } = await worker.scheduled({ cron, scheduledTime: new Date() });
    if (outcome !== 'ok') log.write(lineOf('sweep_failed', `${cron}: ${outcome}`));
  };
  await runScheduled(BOOT_CRON);
  const sweep = setInterval(
    () => void runScheduled(SWEEP_CRON).catch((error) => log.write(lineOf('sweep_failed', String(error)))),
    SWEEP_INTERVAL_MS,
  );
  sweep.unref();

  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    clearInterval(sweep);
    control.close();
    await miniflare.dispose();
    log.close();
    forgetOwner(stateDir);
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    signingKey,
    db,
    bucket,
    runScheduled,
    stop: () => (stopping ??= stop()),
  };
}

const lineOf = (event: string, message: string): string => `${JSON.stringify({ level: 'error', event, message })}\n`;

/** Miniflare's options that do not depend on the Worker. `stateDir` is laid out as `wrangler --persist-to` does. */
function sharedOptions(stateDir: string, port: number, log: LogFile, died: () => void) {
  const persist = persistDir(stateDir);
  return {
    host: '127.0.0.1',
    port,
    cf: false,
    log: new Log(LogLevel.NONE),
    d1Persist: join(persist, 'd1'),
    r2Persist: join(persist, 'r2'),
    durableObjectsPersist: join(persist, 'do'),
    cachePersist: join(persist, 'cache'),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const output of [stdout, stderr]) {
        // Whole characters: one may lie on both sides of a piece's end.
        output.setEncoding('utf8').on('data', runtimeLines(log.write));
      }
      stdout.once('close', died);
    },
  } as const;
}

function openLog(path: string, { onLog, onWarning }: LocalServiceOptions): LogFile {
  const warn = onWarning ?? ((message: string) => void process.stderr.write(`${message}\n`));
  const file = openLogFile(path, (why) => warn(`warning: the log cannot be written and is given up: ${why}`));
  return {
    write(text) {
      file.write(text);
      onLog?.(text);
    },
    close: file.close,
  };
}
