import { random } from '../helpers/audio.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

interface SimulatedEvent {
  readonly at: number;
  readonly run: () => unknown;
}

/** Simulated time: events happen one after another, each when all that the one before it set off has come to rest. */
export class Timeline {
  now: number;
  readonly log: string[] = [];
  readonly #random: () => number;
  /** In the order in which they come. */
  readonly #events: SimulatedEvent[] = [];

  /** @param start milliseconds since the Unix epoch */
  constructor(
    seed: number,
    readonly start: number,
  ) {
    this.now = start;
    // Neighbouring seeds give neighbouring states, and those numbers that resemble one another.
    this.#random = random(seed * 2_654_435_761);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  between(low: number, high: number): number {
    return low + this.#random() * (high - low);
  }

  /** A whole number below `count`. */
  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  say(text: string): void {
    this.log.push(`${((this.now - this.start) / 1000).toFixed(2)} ${text}`);
  }

  /** Events of the same moment come in the order in which they were planned. */
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
      // All that follows from it without waiting for another event: promises only, there is no other input or output.
      await new Promise<void>((done) => setImmediate(done));
    }
    this.now = Math.max(this.now, end);
  }

  /** Forgets what was planned and has not come yet. */
  clear(): void {
    this.#events.length = 0;
  }
}

/** One run of the service's code on a machine that may end it at any moment. What a dead one waits for never comes. */
export class Invocation {
  isDead = false;
  /** Called when it dies before its end. */
  readonly onDeath = new Set<() => void>();

  constructor(
    readonly name: string,
    private readonly time: Timeline,
  ) {}

  /** It ended by itself: nothing of it goes on, and nobody is told. */
  end(): void {
    this.isDead = true;
  }

  die(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.time.say(`DIES ${this.name}`);
    for (const tell of this.onDeath) tell();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((done) => this.time.after(ms, () => !this.isDead && done()));
  }
}
