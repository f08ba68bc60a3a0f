import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { D1Database, R2Bucket } from '@cloudflare/workers-types';
import { runtimeLines } from './log-file.ts';
import { Log, LogLevel, limitBlockingCalls, Miniflare, type WorkerOptions } from './miniflare.ts';
import { persistDir } from './paths.ts';
import { withoutSignalHandlers } from './process-globals.ts';
import { listProcesses } from './processes.ts';
import { type WaitingMessage, waitingMessagesOf } from './stuck-messages.ts';

/** Longest start. A start takes about 1 s, and about 10 s on a loaded machine. */
const START_MS = 120_000;

/** `ended`: on request. `hung`: killed because a call blocked this process for too long. `crashed`: unexpectedly. */
export type RuntimeEnd = 'ended' | 'hung' | 'crashed';

/** One run of workerd, from its start to its end. */
export interface LocalRuntime {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** Settled when workerd ends. */
  readonly ended: Promise<RuntimeEnd>;
  waitingMessages(): Promise<WaitingMessage[]>;
  /** Fires all scheduled handlers. @returns workerd's outcome, `ok` if all succeeded */
  runScheduled(cron: string): Promise<string>;
  end(): Promise<void>;
}

export interface LocalRuntimeOptions {
  /** Has the layout of `wrangler --persist-to`. */
  readonly stateDir: string;
  readonly port: number;
  readonly inspectorPort?: number;
  /** The first Worker answers HTTP and has the bindings `DB` and `BUCKET`. */
  readonly workers: WorkerOptions[];
  /** Names of the Workers that have a scheduled handler. */
  readonly scheduled: readonly (string | undefined)[];
  /** Receives each line that workerd writes. */
  readonly writeLog: (line: string) => void;
  /** Longest time that a call may block this process before workerd counts as hung, milliseconds. */
  readonly blockingLimitMs: number;
}

/**
 * Starts workerd.
 *
 * @param signal aborts the start
 */
export async function startRuntime(options: LocalRuntimeOptions, signal: AbortSignal): Promise<LocalRuntime> {
  let reportEnd: (reason: RuntimeEnd) => void = () => {};
  const ended = new Promise<RuntimeEnd>((done) => {
    reportEnd = done;
  });
  const shared = sharedOptions(options, () => void end('crashed'));
  let miniflare: Miniflare | undefined;
  let disposed: Promise<void> | undefined;
  const end = (reason: RuntimeEnd): Promise<void> => {
    reportEnd(reason);
    stopLimit();
    // At once, because Miniflare restarts a crashed runtime, and the bindings of the old one would not work with it.
    disposed ??= miniflare?.dispose().catch(() => {}) ?? Promise.resolve();
    return disposed;
  };
  let isHung = false;
  const stopLimit = limitBlockingCalls(options.blockingLimitMs, () => {
    isHung = true;
    reportEnd('hung');
    killRuntime(options.port);
  });
  const abort = (): void => void end('ended');
  signal.addEventListener('abort', abort);
  const timer = setTimeout(abort, START_MS);
  try {
    signal.throwIfAborted();
    const started = await withoutSignalHandlers(() => {
      miniflare = new Miniflare({ ...shared, workers: options.workers });
      return miniflare;
    });
    await started.ready;
    if (disposed) throw new Error('workerd did not start in time');
    // Miniflare declares the experimental version of these types.
    const db = (await started.getD1Database('DB')) as unknown as D1Database;
    const bucket = (await started.getR2Bucket('BUCKET')) as unknown as R2Bucket;
    const scheduled = await Promise.all(options.scheduled.map((name) => started.getWorker(name)));
    const waitingMessages = waitingMessagesOf(db);
    await waitingMessages(); // the first call blocks
    return {
      db,
      bucket,
      ended,
      waitingMessages,
      runScheduled: async (cron) => {
        const event = { cron, scheduledTime: new Date() };
        const runs = await Promise.all(scheduled.map((worker) => worker.scheduled(event)));
        return runs.find(({ outcome }) => outcome !== 'ok')?.outcome ?? 'ok';
      },
      end: () => end('ended'),
    };
  } catch (error) {
    await end('ended');
    throw isHung ? new Error('workerd does not answer') : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function sharedOptions({ stateDir, port, inspectorPort, writeLog }: LocalRuntimeOptions, onClose: () => void) {
  const persist = persistDir(stateDir);
  return {
    host: '127.0.0.1',
    port,
    inspectorPort,
    cf: false,
    log: new Log(LogLevel.NONE),
    d1Persist: join(persist, 'd1'),
    r2Persist: join(persist, 'r2'),
    durableObjectsPersist: join(persist, 'do'),
    cachePersist: join(persist, 'cache'),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const output of [stdout, stderr]) {
        // Decodes characters that are split over two chunks.
        output.setEncoding('utf8').on('data', runtimeLines(writeLog));
      }
      stdout.once('close', onClose);
    },
  } as const;
}

/** Kills the workerd that this process runs on a port; Miniflare cannot do so while a call blocks this process. */
function killRuntime(port: number): void {
  for (const { pid, parentPid, command } of listProcesses()) {
    const isOurs = parentPid === process.pid && `${command} `.includes(`--socket-addr=entry=127.0.0.1:${port} `);
    if (isOurs) process.kill(pid, 'SIGKILL');
  }
}
