import type { Invocation, Timeline } from './timeline.ts';

/** Injects faults into the calls of invocations. */
export class Faults {
  /** False when faults have ended, so that all jobs must end. */
  isOn = true;
  hasKilled = false;
  /** Prefixes of the names of calls that fail. */
  readonly unavailable = new Set<string>();
  /** Number of calls that are never answered, by name. */
  readonly hanging = new Map<string, number>();
  /** Number of calls by name. */
  readonly calls = new Map<string, number>();

  /**
   * @param intensity frequency of faults, 1 for the highest
   * @param kill the call whose first caller dies before it is executed, for example `store.finishIngest`
   */
  constructor(
    private readonly time: Timeline,
    private readonly intensity: number,
    private readonly kill: string | undefined,
  ) {}

  chance(probability: number): boolean {
    return this.isOn && this.time.chance(probability);
  }

  count(name: string): void {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
  }

  latencyMs(): number {
    return this.time.chance(0.02) ? this.time.between(1000, 20_000) : this.time.between(1, 60);
  }

  /** Whether the invocation dies in this call, by the parameter `kill`. */
  isKilled(caller: Invocation, name: string): boolean {
    if (name !== this.kill || this.hasKilled) return false;
    this.hasKilled = true;
    caller.die();
    return true;
  }

  /** Executes a call. It may fail, or its invocation may die, before or after the execution. */
  call<T>(caller: Invocation, name: string, run: () => Promise<T>): Promise<T> {
    const { time, intensity } = this;
    this.count(name);
    return new Promise<T>((done, fail) => {
      const hanging = this.hanging.get(name) ?? 0;
      if (hanging > 0) {
        time.trace(`HANGS ${name} of ${caller.name}`);
        this.hanging.set(name, hanging - 1);
        return;
      }
      if ([...this.unavailable].some((prefix) => name.startsWith(prefix))) {
        time.trace(`AWAY ${name} of ${caller.name}`);
        time.after(this.latencyMs(), () => !caller.isDead && fail(new Error(`${name}: away`)));
        return;
      }
      const reply = (answer: () => void) => time.after(this.latencyMs(), () => !caller.isDead && answer());
      time.after(this.latencyMs(), async () => {
        if (caller.isDead) return;
        if (this.isKilled(caller, name)) return;
        if (this.chance(0.012 * intensity)) {
          caller.die();
          return;
        }
        if (this.chance(0.02 * intensity)) {
          time.trace(`FAULT before ${name} of ${caller.name}`);
          reply(() => fail(new Error(`${name}: injected before`)));
          return;
        }
        const isLost = this.chance(0.02 * intensity);
        const isDeadly = this.chance(0.008 * intensity);
        try {
          const value = await run();
          if (isDeadly) caller.die();
          else if (isLost) {
            time.trace(`FAULT after ${name} of ${caller.name}`);
            reply(() => fail(new Error(`${name}: injected after`)));
          } else reply(() => done(value));
        } catch (error) {
          reply(() => fail(error));
        }
      });
    });
  }
}
