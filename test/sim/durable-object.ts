import type { SimulatedEnv } from './doubles.ts';
import { portsOf } from './ports.ts';
import { putCopy } from './sources.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

const ALARM_RETRIES = 6;

type Row = Readonly<Record<string, unknown>>;

export interface WithAlarm {
  alarm(): Promise<void>;
}

/** A Durable Object: storage that stays, an instance of the real class that does not. */
export class SimulatedObject<T extends WithAlarm> {
  readonly #tables = new Map<string, Row[]>();
  readonly #values = new Map<string, unknown>();
  #alarmAt: number | undefined;
  #instance: { readonly object: T; readonly invocation: Invocation } | undefined;

  constructor(
    private readonly world: World,
    private readonly name: string,
    private readonly create: (state: object, env: SimulatedEnv) => T,
  ) {}

  /** Whether it keeps anything, an alarm included. */
  get isKept(): boolean {
    const hasRows = [...this.#tables.values()].some((rows) => rows.length > 0);
    return this.#alarmAt !== undefined || this.#values.size > 0 || hasRows;
  }

  /** When its alarm is due, in simulated milliseconds. */
  get alarmAt(): number | undefined {
    return this.#alarmAt;
  }

  /** A deployment, or the platform at will: who waits for an answer gets an error. */
  reset(): void {
    this.#instance?.invocation.die();
  }

  call<R>(caller: Invocation, method: string, run: (object: T) => Promise<R>): Promise<R> {
    const { time, faults } = this.world;
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

  /** Tables in memory that know the queries of the class by their beginnings, and values. */
  #storage(invocation: Invocation) {
    const values = this.#values;
    const rowsOf = (table: string) => {
      const rows = this.#tables.get(table);
      if (!rows) throw new Error(`no such table: ${table}`);
      return rows;
    };
    const exec = (query: string, ...args: unknown[]) => {
      const table = /\b(counted|parts)\b/.exec(query.replace(/AS \w+/, ''))![1];
      const [verb] = query.split(' ');
      let answer: Row[] = [];
      if (verb === 'CREATE') this.#tables.set(table, this.#tables.get(table) ?? []);
      else if (verb === 'DELETE') rowsOf(table).length = 0;
      else if (verb === 'INSERT' && table === 'counted')
        rowsOf(table).push({ id: args[0], tag: args[1], shard_count: null });
      else if (verb === 'INSERT') {
        const [tag, shard] = args;
        if (!rowsOf(table).some((row) => row.tag === tag && row.shard === shard)) rowsOf(table).push({ tag, shard });
      } else if (verb === 'UPDATE') {
        const [shardCount, id, tag] = args;
        const rows = rowsOf(table);
        const updated = rows.map((row) =>
          row.id === id && row.tag === tag ? { ...row, shard_count: shardCount } : row,
        );
        this.#tables.set(table, updated);
      } else if (query.startsWith('SELECT COUNT'))
        answer = [
          {
            parts: rowsOf(table).filter(({ tag, shard }) => tag === args[0] && Number(shard) < Number(args[1])).length,
          },
        ];
      else if (verb === 'SELECT') answer = [...rowsOf(table)];
      return { toArray: () => answer, one: () => answer[0] };
    };
    // What waits for the storage of an object that was reset waits in vain.
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
      // The alarm goes with it since the compatibility date 2026-02-24.
      deleteAll: () =>
        alive(() => {
          this.#tables.clear();
          values.clear();
          this.#alarmAt = undefined;
        }),
    };
  }

  #setAlarm(at: number): void {
    this.#alarmAt = at;
    this.world.time.at(at, () => this.#alarm(at, 0));
  }

  /** An alarm that fails, or dies, comes again some times, if no other has been set. */
  #alarm(at: number, retry: number): void {
    if (this.#alarmAt !== at) return;
    this.#alarmAt = undefined;
    const { object, invocation } = this.#running();
    const again = () => {
      if (retry >= ALARM_RETRIES || this.#alarmAt !== undefined) return;
      this.#alarmAt = at;
      this.world.time.after(2000 * 2 ** retry, () => this.#alarm(at, retry + 1));
    };
    invocation.onDeath.add(again);
    object.alarm().then(
      () => invocation.onDeath.delete(again),
      () => {
        invocation.onDeath.delete(again);
        if (!invocation.isDead) again();
      },
    );
  }
}
