import { random } from '../helpers/audio.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

interface SimulatedEvent {
  readonly at: number;
  readonly run: () => unknown;
}

/** Simulated time: runs events in order, each after all promises of the previous one have settled. */
export class Timeline {
  now: number;
  readonly log: string[] = [];
  readonly #random: () => number;
  /** Sorted by time. */
  readonly #events: SimulatedEvent[] = [];

  /** @param start milliseconds since the Unix epoch */
  constructor(
    seed: number,
    readonly start: number,
  ) {
    this.now = start;
    // Neighbouring seeds of the generator give similar numbers.
    this.#random = random(seed * 2_654_435_761);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  between(low: number, high: number): number {
    return low + this.#random() * (high - low);
  }

  /** A random integer below `count`. */
  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  trace(text: string): void {
    this.log.push(`${((this.now - this.start) / 1000).toFixed(2)} ${text}`);
  }

  /** Plans an event. Those of the same moment run in the order of planning. */
  at(moment: number, run: () => unknown): void {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#events[middle].at <= moment) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { at: moment, run });
  }

  after(ms: number, run: () => unknown): void {
    this.at(this.now + ms, run);
  }

  async runUntil(end: number): Promise<void> {
    for (;;) {
      const event = this.#events[0];
      if (!event || event.at > end) break;
      this.#events.shift();
      this.now = Math.max(this.now, Math.ceil(event.at));
      await event.run();
      // Lets all promises of the event settle; there is no other input or output.
      await new Promise<void>((done) => setImmediate(done));
    }
    this.now = Math.max(this.now, end);
  }

  /** Removes all planned events. */
  clear(): void {
    this.#events.length = 0;
  }
}

/** One run of the service's code on a machine that may kill it at any moment. A dead one gets no more answers. */
export class Invocation {
  isDead = false;
  /** Callbacks for a death before its end. */
  readonly onDeath = new Set<() => void>();

  constructor(
    readonly name: string,
    private readonly time: Timeline,
  ) {}

  /** Ends the invocation without the callbacks of `onDeath`. */
  end(): void {
    this.isDead = true;
  }

  die(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.time.trace(`DIES ${this.name}`);
    for (const notify of this.onDeath) notify();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((done) => this.time.after(ms, () => !this.isDead && done()));
  }
}
