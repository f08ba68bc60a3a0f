import type { Invocation, Timeline } from './timeline.ts';

/** What goes wrong between an invocation and what it calls. */
export class Faults {
  /** From some moment on nothing goes wrong any more, so that everything must come to its end. */
  isOn = true;
  hasKilled = false;
  /** What is away: calls whose names begin so fail. */
  readonly away = new Set<string>();
  /** Calls of that name that are never answered, as many. */
  readonly hanging = new Map<string, number>();
  /** How often each call was made. */
  readonly calls = new Map<string, number>();

  /**
   * @param intensity how often faults come, 1 for often
   * @param kill the call whose first invocation dies before it is done, such as `store.finishIngest`
   */
  constructor(
    private readonly time: Timeline,
    private readonly intensity: number,
    private readonly kill: string | undefined,
  ) {}

  chance(probability: number): boolean {
    return this.isOn && this.time.chance(probability);
  }

  count(what: string): void {
    this.calls.set(what, (this.calls.get(what) ?? 0) + 1);
  }

  latencyMs(): number {
    return this.time.chance(0.02) ? this.time.between(1000, 20_000) : this.time.between(1, 60);
  }

  /** Whether the invocation dies of the call that is to kill one. */
  isKilled(caller: Invocation, what: string): boolean {
    if (what !== this.kill || this.hasKilled) return false;
    this.hasKilled = true;
    caller.die();
    return true;
  }

  /** One call of an invocation: it may fail before or after it is done, and the invocation may die before or after. */
  call<T>(caller: Invocation, what: string, run: () => Promise<T>): Promise<T> {
    const { time, intensity } = this;
    this.count(what);
    return new Promise<T>((done, fail) => {
      const hanging = this.hanging.get(what) ?? 0;
      if (hanging > 0) {
        time.say(`HANGS ${what} of ${caller.name}`);
        this.hanging.set(what, hanging - 1);
        return;
      }
      if ([...this.away].some((name) => what.startsWith(name))) {
        time.say(`AWAY ${what} of ${caller.name}`);
        time.after(this.latencyMs(), () => !caller.isDead && fail(new Error(`${what}: away`)));
        return;
      }
      const reply = (answer: () => void) => time.after(this.latencyMs(), () => !caller.isDead && answer());
      time.after(this.latencyMs(), async () => {
        if (caller.isDead) return;
        if (this.isKilled(caller, what)) return;
        if (this.chance(0.012 * intensity)) {
          caller.die();
          return;
        }
        if (this.chance(0.02 * intensity)) {
          time.say(`FAULT before ${what} of ${caller.name}`);
          reply(() => fail(new Error(`${what}: injected before`)));
          return;
        }
        const isLost = this.chance(0.02 * intensity);
        const isDeadly = this.chance(0.008 * intensity);
        try {
          const value = await run();
          if (isDeadly) caller.die();
          else if (isLost) {
            time.say(`FAULT after ${what} of ${caller.name}`);
            reply(() => fail(new Error(`${what}: injected after`)));
          } else reply(() => done(value));
        } catch (error) {
          reply(() => fail(error));
        }
      });
    });
  }
}
