import { join, resolve } from 'node:path';
import type { D1Database, R2Bucket } from '@cloudflare/workers-types';
import { type BundledWorker, bundleWorkers } from './bundle.ts';
import { type RunSql, runSqlOn, serveDatabase } from './database.ts';
import { type LocalRuntime, type LocalRuntimeOptions, startRuntime } from './local-runtime.ts';
import { openLogFile } from './log-file.ts';
import { applyMigrations } from './migrations.ts';
import type { WorkerOptions } from './miniflare.ts';
import { claimPort, claimState, forgetOwner, PORT_WAIT_MS, recordOwner } from './owner.ts';
import { bundleCacheDir, projectDir } from './paths.ts';
import { scrubDatabase } from './scrub.ts';
import { loadSecrets } from './secrets.ts';
import { seedModels } from './seed.ts';
import { Supervisor } from './supervisor.ts';
import { WATCHDOG_TIMES, type WatchdogTimes } from './watchdog.ts';
import { checkWorkerd } from './workerd-program.ts';

/** Cron expression of the wrangler files; workerd does not fire it. */
const SWEEP_CRON = '*/5 * * * *';
const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** Makes the Workers send all outstanding messages again, because the previous process had the queues in memory. */
const BOOT_CRON = '@boot';

const LOCAL_VARS = { ALLOW_LOOPBACK: '1' };

function engineVariables(): Record<string, string> {
  const named = Object.entries(process.env).filter(([name]) => name.startsWith('ROLLCALL_ASR_'));
  return Object.fromEntries(named.filter(([, value]) => value)) as Record<string, string>;
}

export interface LocalServiceOptions {
  /** Folder for the databases, objects, secrets and the log of this service. */
  readonly stateDir: string;
  /** 0 (the default) selects a free port. */
  readonly port?: number;
  /** Variables of all Workers; they override those of the wrangler files. */
  readonly vars?: Record<string, string>;
  /** Repository with wrangler.toml, migrations/ and models/; this one by default. */
  readonly root?: string;
  /** Opens workerd's inspector on this port, for measurements. */
  readonly inspectorPort?: number;
  /**
   * Another Worker in the same workerd, for measurements: an ES module and its route (`*` + path).
   */
  readonly beside?: { readonly script: string; readonly route: string };
  /** Receives the Workers' log, line by line. */
  readonly onLog?: (text: string) => void;
  /** Receives faults in spite of which the service continues; the default writes them to stderr. */
  readonly onWarning?: (message: string) => void;
  /**
   * Called when workerd keeps crashing in spite of restarts. The service has then ended and can be started again.
   */
  readonly onRuntimeLost?: () => void;
  /** Shorter times for tests. */
  readonly watchdogTimes?: Partial<WatchdogTimes>;
}

export interface LocalService {
  /** Address without a trailing slash. */
  readonly url: string;
  readonly port: number;
  readonly signingKey: string;
  /** Database of the current runtime. Read it for each use, because a restart replaces it. */
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** Fires the scheduled handlers and waits for them. */
  runScheduled(cron: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the service on this machine: its Workers in workerd with local D1, R2, Queues and Durable Objects. Cleans up
 * after a killed service on this state folder, and replaces a runtime that hangs or ends. In both cases, jobs continue.
 *
 * @throws LocalServiceBusy when another process has the port or the state folder, LocalStateError if workerd does not
 *   run on this system
 */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
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
    await checkWorkerd();
    await scrubDatabase(stateDir).catch((error) => log.write(lineOf('scrub_failed', String(error), 'warn')));
    const times = { ...WATCHDOG_TIMES, ...options.watchdogTimes };
    const bundled = await bundleWorkers(root, bundleCacheDir(root));
    const vars = { ...LOCAL_VARS, ...engineVariables(), ...options.vars };
    const runtimeOptions: LocalRuntimeOptions = {
      stateDir,
      port,
      inspectorPort: options.inspectorPort,
      workers: [...bundled.map((worker) => withVars(worker, signingKey, vars)), ...extraWorkers(options)],
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
      onGivenUp: () => options.onRuntimeLost?.(),
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

function extraWorkers({ beside }: LocalServiceOptions): WorkerOptions[] {
  return beside ? [{ name: 'beside', modules: true, script: beside.script, routes: [beside.route] }] : [];
}

const lineOf = (event: string, message: string, level = 'error'): string =>
  `${JSON.stringify({ level, event, message })}\n`;

function openLog(path: string, { onLog, onWarning }: LocalServiceOptions) {
  const showWarning = onWarning ?? ((message: string) => void process.stderr.write(`${message}\n`));
  const file = openLogFile(path, (why) =>
    showWarning(`warning: the log cannot be written (${why}). The service continues without it.`),
  );
  return {
    write(text: string): void {
      file.write(text);
      onLog?.(text);
    },
    /** Does not call `onLog`, whose output may go to the same terminal as the warnings. */
    warn(message: string): void {
      file.write(lineOf('watchdog', message, 'warn'));
      showWarning(message);
    },
    close: file.close,
  };
}
