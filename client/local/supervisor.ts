import { pause } from '../sdk/pause.ts';
import type { LocalRuntime } from './local-runtime.ts';
import { type RestartReason, Watchdog, type WatchdogTimes } from './watchdog.ts';

/** The supervisor gives up after more crashes and failed starts than this within FAILURES_MS. */
const MOST_FAILURES = 3;
const FAILURES_MS = 10 * 60_000;
/** Ctrl-C may reach workerd before this process: time to wait for a stop after workerd ended. */
const INTERRUPT_MS = 300;
/** Pause after a failed start. */
const RETRY_MS = 1000;

export interface SupervisorOptions {
  /** @param signal aborts the start */
  start(signal: AbortSignal): Promise<LocalRuntime>;
  /** Prepares a runtime: migrations, models, lost messages. */
  prepare(runtime: LocalRuntime): Promise<void>;
  /** Sends all outstanding messages again. */
  resend(runtime: LocalRuntime): Promise<void>;
  readonly times: WatchdogTimes;
  warn(message: string): void;
  /** Called when the runtime keeps crashing and is not started again. */
  onGivenUp(): void;
}

/** Keeps a runtime running: replaces one that hangs, ends or stops delivering messages. */
export class Supervisor {
  readonly #stopping = new AbortController();
  readonly #ignored = new Set<string>();
  readonly #failures: number[] = [];
  #runtime: LocalRuntime | undefined;
  #watchdog: Watchdog | undefined;
  #restarting: Promise<void> | undefined;

  constructor(private readonly options: SupervisorOptions) {}

  /** The current runtime. */
  get runtime(): LocalRuntime {
    if (!this.#runtime) throw new Error('the runtime (workerd) does not run');
    return this.#runtime;
  }

  /** Returns the current runtime; waits for the end of a restart. */
  async ready(): Promise<LocalRuntime> {
    await this.#restarting;
    return this.runtime;
  }

  /** @throws the error of the first start */
  async start(): Promise<void> {
    for (let count = 1; ; count++) {
      try {
        return await this.#bringUp();
      } catch (error) {
        if (!(error instanceof RuntimeHung) || count === MOST_FAILURES) throw error;
        this.options.warn(describe({ kind: 'silence' }, this.options.times));
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watchdog?.end();
    await this.#runtime?.end();
    await this.#restarting;
    await this.#runtime?.end();
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #bringUp(): Promise<void> {
    const { start, prepare, resend, times, warn } = this.options;
    const runtime = await start(this.#stopping.signal);
    this.#runtime = runtime;
    const run: { state: 'preparing' | 'hung' | 'up' | 'replaced' } = { state: 'preparing' };
    const replace = (work: () => Promise<void>): void => {
      if (run.state !== 'up') return;
      run.state = 'replaced';
      this.#afterRestart(work);
    };
    const restart = (reason: RestartReason): void => {
      if (run.state === 'preparing') {
        run.state = 'hung';
        void runtime.end();
      }
      replace(() => this.#restart(describe(reason, times)));
    };
    const watched = {
      probe: () => runtime.waitingMessages(),
      resend: (queue: string) => {
        warn(`warning: the queue "${queue}" delivered no message for ${seconds(times.queue)}. ${RESENT}`);
        return resend(runtime);
      },
      restart,
    };
    const watchdog = new Watchdog(watched, times, this.#ignored);
    this.#watchdog = watchdog;
    void runtime.ended.then((end) => {
      watchdog.end();
      if (end === 'hung') restart({ kind: 'silence' });
      if (end === 'crashed') replace(() => this.#afterCrash());
    });
    try {
      await prepare(runtime);
    } catch (error) {
      watchdog.end();
      await runtime.end();
      throw run.state === 'hung' ? new RuntimeHung('it does not answer') : error;
    }
    run.state = 'up';
  }

  /** Starts a restart when the current one has ended. */
  #afterRestart(work: () => Promise<void>): void {
    const restarting = (this.#restarting ?? Promise.resolve()).then(work).finally(() => {
      if (this.#restarting === restarting) this.#restarting = undefined;
    });
    this.#restarting = restarting;
  }

  async #afterCrash(): Promise<void> {
    await pause(INTERRUPT_MS, this.#stopping.signal);
    if (this.#isStopping) return;
    if (!this.#mayRetry()) return this.options.onGivenUp();
    await this.#restart(`warning: the local runtime (workerd) ended unexpectedly and is restarted. ${JOBS_CONTINUE}`);
  }

  async #restart(message: string): Promise<void> {
    if (this.#isStopping) return;
    this.options.warn(message);
    await this.#runtime?.end();
    while (!this.#isStopping) {
      try {
        return await this.#bringUp();
      } catch (error) {
        if (this.#isStopping) return;
        if (!this.#mayRetry()) return this.options.onGivenUp();
        const reason = error instanceof Error ? error.message : String(error);
        this.options.warn(`warning: the local runtime (workerd) did not start (${reason}). It is started again.`);
        await pause(RETRY_MS, this.#stopping.signal);
      }
    }
  }

  /** Counts a failure. @returns whether another start is allowed */
  #mayRetry(): boolean {
    const now = Date.now();
    while (this.#failures.length > 0 && now - this.#failures[0] > FAILURES_MS) this.#failures.shift();
    this.#failures.push(now);
    return this.#failures.length <= MOST_FAILURES;
  }
}

class RuntimeHung extends Error {}

const RESENT = 'All outstanding messages are sent again, without loss.';
const JOBS_CONTINUE = 'Jobs continue without loss. Live streams and open requests are disconnected.';

function describe(reason: RestartReason, times: WatchdogTimes): string {
  const what =
    reason.kind === 'silence'
      ? `the local runtime (workerd) did not answer for ${seconds(times.silence)} and is restarted`
      : `the queue "${reason.queue}" still delivers no message, so the local runtime (workerd) is restarted`;
  return `warning: ${what}. ${JOBS_CONTINUE}`;
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;
