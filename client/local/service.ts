import { join, resolve } from 'node:path';
import type { D1Database, R2Bucket } from '@cloudflare/workers-types';
import { type BundledWorker, bundleWorkers } from './bundle.ts';
import { claimPort, claimState } from './claim.ts';
import { type RunSql, runSqlOn, serveDatabase } from './database.ts';
import { type LocalRuntime, type LocalRuntimeOptions, startRuntime } from './local-runtime.ts';
import { openLogFile } from './log-file.ts';
import { applyMigrations } from './migrations.ts';
import type { WorkerOptions } from './miniflare.ts';
import { forgetOwner, recordOwner } from './owner.ts';
import { bundleCacheDir, projectDir } from './paths.ts';
import { checkRuntime } from './runtime.ts';
import { scrubDatabase } from './scrub.ts';
import { loadSecrets } from './secrets.ts';
import { seedModels } from './seed.ts';
import { startAgain } from './start-again.ts';
import { Supervisor } from './supervisor.ts';
import { WATCHDOG_TIMES, type WatchdogTimes } from './watchdog.ts';

/** Cron expression of the wrangler files; local cron never fires by itself. */
const SWEEP_CRON = '*/5 * * * *';
const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** Tells the Workers that every message of the process before is lost. */
const BOOT_CRON = '@boot';
/** A killed process may be gone from the list a moment before the kernel has closed its sockets. */
const PORT_WAIT_MS = 5000;

const LOCAL_VARS = { ALLOW_LOOPBACK: '1' };

/** Transcription engines of this environment. */
function engineVariables(): Record<string, string> {
  const named = Object.entries(process.env).filter(([name]) => name.startsWith('ROLLCALL_ASR_'));
  return Object.fromEntries(named.filter(([, value]) => value)) as Record<string, string>;
}

export interface LocalServiceOptions {
  /** Folder for the databases, objects, secrets and the log of this service. */
  readonly stateDir: string;
  /** 0 (the default) takes a free one. */
  readonly port?: number;
  /** Variables of all Workers in place of those of their wrangler files. */
  readonly vars?: Record<string, string>;
  /** Repository with wrangler.toml, migrations/ and models/; this one by default. */
  readonly root?: string;
  /** Opens workerd's inspector there, for measurements. */
  readonly inspectorPort?: number;
  /**
   * Another Worker in the same workerd, for measurements: an ES module, and the route (`*` + path) under which it
   * answers.
   */
  readonly beside?: { readonly script: string; readonly route: string };
  /** Gets what the Workers write to their log, line by line as workerd prints it. */
  readonly onLog?: (text: string) => void;
  /** Something that a person should know, and in spite of which the service continues; standard error by default. */
  readonly onWarning?: (message: string) => void;
  /**
   * workerd kept ending by itself (crashed or was killed) in spite of restarts; the service is gone and can be started
   * again.
   */
  readonly onDeath?: () => void;
  /** For tests, which cannot wait for minutes. */
  readonly watchdogTimes?: Partial<WatchdogTimes>;
}

export interface LocalService {
  /** Address without a trailing slash. */
  readonly url: string;
  readonly port: number;
  readonly signingKey: string;
  /** That of the runtime that runs now: read it again for each use, since a restart replaces it. */
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** Fires the scheduled handlers and waits for them. */
  runScheduled(cron: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the whole service on this machine: its Workers in workerd with local D1, R2, Queues and Durable Objects. A
 * service that was killed before on the same state folder is cleaned up first, and its jobs continue. A runtime that
 * hangs or ends is replaced, and its jobs continue.
 *
 * @throws LocalServiceBusy when another process has the port or the state folder, LocalStateError where workerd does
 *   not run
 */
export function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  return startAgain(() => startOnce(options));
}

async function startOnce(options: LocalServiceOptions): Promise<LocalService> {
  const root = options.root ?? projectDir;
  const stateDir = resolve(options.stateDir);
  const port = await claimState(stateDir, options.port ?? 0);
  const log = openLog(join(stateDir, 'service.log'), options);
  const close = (): void => {
    log.close();
    forgetOwner(stateDir);
  };
  try {
    const { signingKey } = loadSecrets(stateDir);
    await checkRuntime();
    await scrubDatabase(stateDir).catch((error) => log.write(lineOf('scrub_failed', String(error), 'warn')));
    const times = { ...WATCHDOG_TIMES, ...options.watchdogTimes };
    const bundled = await bundleWorkers(root, bundleCacheDir(root));
    const vars = { ...LOCAL_VARS, ...engineVariables(), ...options.vars };
    const runtimeOptions: LocalRuntimeOptions = {
      stateDir,
      port,
      inspectorPort: options.inspectorPort,
      workers: [...bundled.map((worker) => withVars(worker, signingKey, vars)), ...besides(options)],
      scheduled: bundled.filter(({ sweeps }) => sweeps).map((worker) => worker.options.name),
      writeLog: log.write,
      blockingLimitMs: times.silence,
    };
    const runCron = async (runtime: LocalRuntime, cron: string): Promise<void> => {
      const outcome = await runtime.runScheduled(cron);
      if (outcome !== 'ok') log.write(lineOf('sweep_failed', `${cron}: ${outcome}`));
    };
    const supervisor = new Supervisor({
      async start(signal) {
        await claimPort(port, Date.now() + PORT_WAIT_MS);
        return startRuntime(runtimeOptions, signal);
      },
      async prepare(runtime) {
        await applyMigrations(runtime.db, join(root, 'migrations'));
        await seedModels(runtime.bucket, root);
        recordOwner(stateDir, { port, control });
        await runCron(runtime, BOOT_CRON);
      },
      resend: (runtime) => runCron(runtime, BOOT_CRON),
      times,
      warn: log.warn,
      onGivenUp: () => options.onDeath?.(),
    });
    const run: RunSql = async (sql, ...params) => runSqlOn((await supervisor.ready()).db)(sql, ...params);
    const control = await serveDatabase(run);
    try {
      await supervisor.start();
    } catch (error) {
      control.close();
      throw error;
    }
    const runScheduled = async (cron: string): Promise<void> => runCron(await supervisor.ready(), cron);
    const sweep = setInterval(
      () => void runScheduled(SWEEP_CRON).catch((error) => log.write(lineOf('sweep_failed', String(error)))),
      SWEEP_INTERVAL_MS,
    );
    sweep.unref();
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      clearInterval(sweep);
      control.close();
      await supervisor.stop();
      close();
    };
    return {
      url: `http://127.0.0.1:${port}`,
      port,
      signingKey,
      get db() {
        return supervisor.runtime.db;
      },
      get bucket() {
        return supervisor.runtime.bucket;
      },
      runScheduled,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    close();
    throw error;
  }
}

function withVars({ options }: BundledWorker, signingKey: string, vars: Record<string, string>): WorkerOptions {
  const bindings = { ...options.bindings, SIGNING_KEY: signingKey, ...vars };
  return { ...options, bindings } as WorkerOptions;
}

function besides({ beside }: LocalServiceOptions): WorkerOptions[] {
  return beside ? [{ name: 'beside', modules: true, script: beside.script, routes: [beside.route] }] : [];
}

const lineOf = (event: string, message: string, level = 'error'): string =>
  `${JSON.stringify({ level, event, message })}\n`;

function openLog(path: string, { onLog, onWarning }: LocalServiceOptions) {
  const tell = onWarning ?? ((message: string) => void process.stderr.write(`${message}\n`));
  const file = openLogFile(path, (why) => tell(`warning: the log cannot be written and is given up: ${why}`));
  return {
    write(text: string): void {
      file.write(text);
      onLog?.(text);
    },
    /** To the log file and to the person; `onLog` may go to the same terminal. */
    warn(message: string): void {
      file.write(lineOf('watchdog', message, 'warn'));
      tell(message);
    },
    close: file.close,
  };
}
