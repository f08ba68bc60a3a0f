import type { WaitingMessage } from './stuck-messages.ts';

/** All in milliseconds. */
export interface WatchdogTimes {
  /** Interval of the probes. */
  readonly probe: number;
  /** Time without an answer after which a runtime counts as hung. */
  readonly silence: number;
  /** Time without a change of its oldest message after which a queue counts as stuck. */
  readonly queue: number;
  /** Time within which the queue must deliver a message after a resend. */
  readonly resend: number;
}

export const WATCHDOG_TIMES: WatchdogTimes = { probe: 10_000, silence: 60_000, queue: 60_000, resend: 30_000 };

export type RestartReason = { readonly kind: 'silence' } | { readonly kind: 'queue'; readonly queue: string };

export interface WatchedRuntime {
  /** Returns the waiting messages of each queue, the oldest first. Pending until the runtime answers. */
  probe(): Promise<readonly WaitingMessage[]>;
  /** Sends all outstanding messages again. */
  resend(queue: string): Promise<void>;
  /** Replaces the runtime; called after the watchdog has ended. */
  restart(reason: RestartReason): void;
}

/**
 * Watches a runtime until it must be replaced: when it does not answer, or one of its queues delivers nothing even
 * after a resend. Time in which this process was suspended, such as the sleep of a laptop, does not count.
 *
 * @param ignored ids of messages for which a restart did not help; shared by the watchdogs of one service
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  readonly #queues = new Map<string, QueueWatch>();
  #seenAt = Date.now();
  #answeredAt = Date.now();
  #isResending = false;
  #isEnded = false;

  constructor(
    private readonly runtime: WatchedRuntime,
    private readonly times: WatchdogTimes,
    private readonly ignored: Set<string>,
  ) {
    this.#timer = setInterval(() => this.#tick(), times.probe);
    this.#timer.unref();
  }

  end(): void {
    this.#isEnded = true;
    clearInterval(this.#timer);
  }

  /** Returns the time. Resets all timeouts when the timer fires late, because this process was suspended. */
  #now(): number {
    const now = Date.now();
    const elapsed = now - this.#seenAt;
    this.#seenAt = now;
    if (elapsed < 0 || elapsed > 2 * this.times.probe) {
      this.#answeredAt = now;
      for (const queue of this.#queues.values()) queue.since = now;
    }
    return now;
  }

  #tick(): void {
    const now = this.#now();
    if (now - this.#answeredAt < this.times.silence) void this.#probe();
    else this.#restart({ kind: 'silence' });
  }

  /** Probes may overlap: a runtime that takes 30 s for each answer is slow but not hung. */
  async #probe(): Promise<void> {
    const waiting = await this.runtime.probe().catch(() => undefined);
    if (this.#isEnded || waiting === undefined) return;
    this.#answeredAt = this.#now();
    if (!this.#isResending) await this.#judge(waiting);
  }

  async #judge(waiting: readonly WaitingMessage[]): Promise<void> {
    const oldest = new Map<string, WaitingMessage>();
    for (const message of waiting) {
      if (!oldest.has(message.queue) && !this.ignored.has(message.id)) oldest.set(message.queue, message);
    }
    for (const name of this.#queues.keys()) {
      if (!oldest.has(name)) this.#queues.delete(name);
    }
    const now = this.#now();
    for (const [name, message] of oldest) {
      const watch = this.#queues.get(name);
      if (!watch?.isAt(message)) {
        this.#queues.set(name, new QueueWatch(message, now));
      } else if (watch.resent && now - watch.since >= this.times.resend) {
        this.ignored.add(message.id);
        return this.#restart({ kind: 'queue', queue: name });
      } else if (!watch.resent && now - watch.since >= this.times.queue) {
        return this.#resend(name);
      }
    }
  }

  async #resend(queue: string): Promise<void> {
    this.#isResending = true;
    const timeout = new Promise((end) => setTimeout(end, this.times.resend).unref());
    await Promise.race([this.runtime.resend(queue).catch(() => {}), timeout]);
    this.#isResending = false;
    this.#queues.clear();
    this.#queues.set(queue, new QueueWatch(undefined, this.#now()));
  }

  #restart(reason: RestartReason): void {
    this.end();
    this.runtime.restart(reason);
  }
}

/** The oldest waiting message of a queue. */
class QueueWatch {
  readonly resent: boolean;

  /**
   * @param message undefined after a resend, which changes all messages: then the next message is watched
   * @param since time of its first probe, milliseconds; a suspension moves it forward
   */
  constructor(
    private message: WaitingMessage | undefined,
    public since: number,
  ) {
    this.resent = message === undefined;
  }

  /** Whether this is the same message, unchanged: then the queue has delivered nothing. */
  isAt(message: WaitingMessage): boolean {
    this.message ??= message;
    return this.message.id === message.id && this.message.state === message.state;
  }
}
