import { vi } from 'vitest';
import { PlanMemory } from '../../src/jobs/plan-memory.ts';
import type { ProgressRpc } from '../../src/platform/progress.ts';
import type { SimulatedEnv } from './doubles.ts';
import { portsOf } from './ports.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

interface Progress extends ProgressRpc {
  alarm(): Promise<void>;
}

/** The real class, by its name only: it is typed for workerd, with the modules that are bundled there, and this folder for Node. */
const { JobProgress } = await vi.importActual<{
  readonly JobProgress: new (state: object, env: SimulatedEnv) => Progress;
}>('../../durable-objects/job-progress.ts');

const ALARM_RETRIES = 6;

type Row = Readonly<Record<string, unknown>>;

/** The Durable Object of one job: storage that stays, an instance of the real class that does not. */
export class ProgressObject {
  readonly #tables = new Map<string, Row[]>();
  #alarmAt: number | undefined;
  #instance: { readonly object: Progress; readonly invocation: Invocation } | undefined;

  constructor(
    private readonly world: World,
    private readonly jobId: string,
  ) {}

  /** Whether it keeps anything, an alarm included. */
  get isKept(): boolean {
    return this.#alarmAt !== undefined || [...this.#tables.values()].some((rows) => rows.length > 0);
  }

  /** When its alarm is due, in simulated milliseconds. */
  get alarmAt(): number | undefined {
    return this.#alarmAt;
  }

  /** A deployment, or the platform at will: who waits for an answer gets an error. */
  reset(): void {
    this.#instance?.invocation.die();
  }

  call<T>(caller: Invocation, name: string, run: (object: Progress) => Promise<T>): Promise<T> {
    const { time, faults } = this.world;
    return new Promise<T>((done, fail) => {
      const reply = (answer: () => void) => time.after(faults.latencyMs(), () => !caller.isDead && answer());
      time.after(faults.latencyMs(), () => {
        if (caller.isDead) return;
        if (faults.chance(0.03)) {
          fail(new Error(`${name}: object away`));
          return;
        }
        const { object, invocation } = this.#running();
        const onDeath = () => !caller.isDead && fail(new Error(`${name}: object was reset`));
        invocation.onDeath.add(onDeath);
        run(object).then(
          (value) => {
            invocation.onDeath.delete(onDeath);
            reply(() => (faults.chance(0.03) ? fail(new Error(`${name}: answer lost`)) : done(value)));
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
    const invocation = world.invocation(`object ${this.jobId}`);
    const env: SimulatedEnv = { ports: portsOf(world, invocation, { plans: new PlanMemory(), work: world.work }) };
    const object = new JobProgress({ storage: this.#storage() }, env);
    this.#instance = { object, invocation };
    return this.#instance;
  }

  /** The queries of the class, by their beginnings, over tables in memory. */
  #storage() {
    const rowsOf = (table: string) => {
      const rows = this.#tables.get(table);
      if (!rows) throw new Error(`no such table: ${table}`);
      return rows;
    };
    const exec = (query: string, ...args: unknown[]) => {
      const table = /"(parts_[^"]+)"/.exec(query)?.[1] ?? 'job';
      const [verb] = query.split(' ');
      let answer: Row[] = [];
      if (verb === 'CREATE') this.#tables.set(table, this.#tables.get(table) ?? []);
      else if (verb === 'DELETE') rowsOf(table).length = 0;
      else if (verb === 'INSERT' && table === 'job') rowsOf(table).push({ id: args[0], shard_count: args[1] });
      else if (verb === 'INSERT' && !rowsOf(table).some(({ shard }) => shard === args[0]))
        rowsOf(table).push({ shard: args[0] });
      else if (query.startsWith('SELECT COUNT')) answer = [{ parts: rowsOf(table).length }];
      else if (verb === 'SELECT') answer = [...rowsOf(table)];
      return { toArray: () => answer, one: () => answer[0] };
    };
    return {
      sql: { exec },
      transactionSync: (run: () => void) => run(),
      getAlarm: async () => this.#alarmAt ?? null,
      setAlarm: async (at: number) => this.#setAlarm(at),
      deleteAlarm: async () => {
        this.#alarmAt = undefined;
      },
      // The alarm goes with it since the compatibility date 2026-02-24.
      deleteAll: async () => {
        this.#tables.clear();
        this.#alarmAt = undefined;
      },
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
