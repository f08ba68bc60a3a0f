import { DatabaseSync } from 'node:sqlite';
import type { SimulatedEnv } from './doubles.ts';
import { portsOf } from './ports.ts';
import { putCopy } from './sources.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

const ALARM_RETRIES = 6;

export interface WithAlarm {
  alarm(): Promise<void>;
}

/** A Durable Object: storage that survives resets, and an instance of the real class that does not. */
export class SimulatedObject<T extends WithAlarm> {
  #database = new DatabaseSync(':memory:');
  readonly #values = new Map<string, unknown>();
  #alarmAt: number | undefined;
  #instance: { readonly object: T; readonly invocation: Invocation } | undefined;

  constructor(
    private readonly world: World,
    private readonly name: string,
    private readonly create: (state: object, env: SimulatedEnv) => T,
  ) {}

  /** Whether it has stored values or an alarm. */
  get hasStorage(): boolean {
    const tables = this.#query(`SELECT name FROM sqlite_master WHERE type = 'table'`);
    const hasRows = tables.some(({ name }) => this.#query(`SELECT 1 FROM ${name} LIMIT 1`).length > 0);
    return this.#alarmAt !== undefined || this.#values.size > 0 || hasRows;
  }

  /** When its alarm is due, in simulated milliseconds. */
  get alarmAt(): number | undefined {
    return this.#alarmAt;
  }

  /** Simulates a deployment or an eviction: pending calls fail. */
  reset(): void {
    this.#instance?.invocation.die();
  }

  call<R>(caller: Invocation, method: string, run: (object: T) => Promise<R>): Promise<R> {
    const { time, faults } = this.world;
    faults.count(`object ${method}`);
    return new Promise<R>((done, fail) => {
      const reply = (answer: () => void) => time.after(faults.latencyMs(), () => !caller.isDead && answer());
      time.after(faults.latencyMs(), () => {
        if (caller.isDead || faults.isKilled(caller, method)) return;
        if (faults.chance(0.03)) {
          fail(new Error(`${method}: object away`));
          return;
        }
        const { object, invocation } = this.#running();
        const onDeath = () => !caller.isDead && fail(new Error(`${method}: object was reset`));
        invocation.onDeath.add(onDeath);
        run(object).then(
          (value) => {
            invocation.onDeath.delete(onDeath);
            reply(() => (faults.chance(0.03) ? fail(new Error(`${method}: answer lost`)) : done(value)));
          },
          (error: unknown) => {
            invocation.onDeath.delete(onDeath);
            reply(() => fail(error));
          },
        );
      });
    });
  }

  #running() {
    if (this.#instance && !this.#instance.invocation.isDead) return this.#instance;
    const { world } = this;
    const invocation = world.invocation(this.name);
    const { bucket } = world.storage;
    const env: SimulatedEnv = {
      ports: portsOf(world, invocation, { work: world.work }),
      client: { world, caller: invocation },
      BUCKET: {
        head: (key: string) => world.faults.call(invocation, 'bucket.head', () => bucket.head(key)),
        put: (key: string, text: string) =>
          world.faults.call(invocation, 'bucket.put', () => putCopy(world, key, text)),
      } as unknown as SimulatedEnv['BUCKET'],
    };
    const object = this.create({ storage: this.#storage(invocation) }, env);
    this.#instance = { object, invocation };
    return this.#instance;
  }

  #query(sql: string, ...args: (string | number | null)[]): Readonly<Record<string, unknown>>[] {
    return this.#database.prepare(sql).all(...args) as Readonly<Record<string, unknown>>[];
  }

  /** The object's storage API: a database in memory, values and the alarm. */
  #storage(invocation: Invocation) {
    const values = this.#values;
    const exec = (sql: string, ...args: (string | number | null)[]) => {
      const rows = this.#query(sql, ...args);
      return { toArray: () => rows, one: () => rows[0] };
    };
    // Storage calls of an object that was reset never resolve.
    const alive = <R>(run: () => R): Promise<R> =>
      invocation.isDead ? new Promise<R>(() => undefined) : Promise.resolve(run());
    return {
      sql: { exec },
      transactionSync: (run: () => void) => run(),
      get: (key: string) => alive(() => structuredClone(values.get(key))),
      put: (key: string, value: unknown) => alive(() => void values.set(key, structuredClone(value))),
      delete: (key: string) => alive(() => values.delete(key)),
      getAlarm: () => alive(() => this.#alarmAt ?? null),
      setAlarm: (at: number) => alive(() => this.#setAlarm(at)),
      deleteAlarm: () =>
        alive(() => {
          this.#alarmAt = undefined;
        }),
      // Deletes the alarm too since the compatibility date 2026-02-24.
      deleteAll: () =>
        alive(() => {
          this.#database = new DatabaseSync(':memory:');
          values.clear();
          this.#alarmAt = undefined;
        }),
    };
  }

  #setAlarm(at: number): void {
    this.#alarmAt = at;
    this.world.time.at(at, () => this.#alarm(at, 0));
  }

  /** Runs the alarm. A failed or killed one is retried unless another has been set. */
  #alarm(at: number, retry: number): void {
    if (this.#alarmAt !== at) return;
    this.#alarmAt = undefined;
    this.world.faults.count('object alarm');
    const { object, invocation } = this.#running();
    const retryLater = () => {
      if (retry >= ALARM_RETRIES || this.#alarmAt !== undefined) return;
      this.#alarmAt = at;
      this.world.time.after(2000 * 2 ** retry, () => this.#alarm(at, retry + 1));
    };
    invocation.onDeath.add(retryLater);
    object.alarm().then(
      () => invocation.onDeath.delete(retryLater),
      () => {
        invocation.onDeath.delete(retryLater);
        if (!invocation.isDead) retryLater();
      },
    );
  }
}
