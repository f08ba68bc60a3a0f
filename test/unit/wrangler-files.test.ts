import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { QUEUES } from '../../client/deploy/config.ts';
import { loadWrangler } from '../../client/local/bundle.ts';
import { API, JOBS, LIVE, type ServiceWorker, WORKERS } from '../../client/workers.ts';
import { root } from '../helpers/local-process.ts';

/** The parts of a wrangler file that are looked at here, as wrangler reads them. */
interface Config {
  readonly name: string;
  /** Absolute path. */
  readonly main: string;
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
  readonly limits: object;
  readonly observability: object;
  readonly workers_dev?: boolean;
  readonly vars: object;
  readonly triggers: { readonly crons?: readonly string[] };
  readonly d1_databases: readonly { binding: string; database_id: string; database_name: string }[];
  readonly r2_buckets: readonly { binding: string; bucket_name: string }[];
  readonly queues: {
    readonly producers?: readonly { binding: string; queue: string }[];
    readonly consumers?: readonly { queue: string; dead_letter_queue?: string }[];
  };
  readonly durable_objects: { readonly bindings: readonly { class_name: string; script_name?: string }[] };
  readonly migrations: readonly { new_sqlite_classes?: readonly string[]; deleted_classes?: readonly string[] }[];
}

const configs = new Map<ServiceWorker, Config>();
const of = (worker: ServiceWorker): Config => configs.get(worker)!;
beforeAll(async () => {
  const { unstable_readConfig } = await loadWrangler();
  for (const worker of WORKERS) {
    configs.set(worker, unstable_readConfig({ config: join(root, worker.config) }) as unknown as Config);
  }
});

/** What the Workers have in common. */
const common = (config: Config) => ({
  compatibilityDate: config.compatibility_date,
  compatibilityFlags: config.compatibility_flags,
  limits: config.limits,
  observability: config.observability,
  databases: config.d1_databases.map(({ binding, database_id, database_name }) => [
    binding,
    database_id,
    database_name,
  ]),
  buckets: config.r2_buckets.map(({ binding, bucket_name }) => [binding, bucket_name]),
});

it('the wrangler files agree: public hosts, CPU time for a long assembly, no request logs, the same storage', () => {
  for (const worker of WORKERS) expect(of(worker).name).toBe(worker.name);
  expect(common(of(API))).toMatchObject({
    compatibilityFlags: ['global_fetch_strictly_public'],
    limits: { cpu_ms: 300_000 },
    observability: { enabled: true, logs: { enabled: true, invocation_logs: false } },
    databases: [['DB', expect.any(String), 'rollcall']],
    buckets: [['BUCKET', 'rollcall']],
  });
  for (const worker of [JOBS, LIVE]) expect(common(of(worker))).toEqual(common(of(API)));
  expect(of(API).vars).toEqual({ OUTPUT_TTL_SECONDS: '86400' });
  expect(of(JOBS).vars).toEqual(of(API).vars);
});

it('every queue that a Worker sends to has one consumer, and so has that of the dead', () => {
  const producers = of(API).queues.producers;
  expect(of(JOBS).queues.producers).toEqual(producers);
  const consumed = WORKERS.flatMap((worker) => of(worker).queues.consumers ?? []);
  expect(consumed.map(({ queue }) => queue).sort()).toEqual([...QUEUES].sort());
  const dead = 'rollcall-dead';
  expect(producers?.map(({ queue }) => queue).sort()).toEqual(QUEUES.filter((queue) => queue !== dead).sort());
  // What is in none of them is lost to the job's owner.
  for (const consumer of consumed) expect(consumer.dead_letter_queue).toBe(consumer.queue === dead ? undefined : dead);
});

it('every object that a Worker is bound to is a class of a Worker that is deployed before', () => {
  const bindings = WORKERS.flatMap((worker) =>
    of(worker).durable_objects.bindings.map((binding) => ({ worker, binding })),
  );
  expect(bindings.map(({ binding }) => binding.class_name)).toContain('LiveStream');
  for (const { worker, binding } of bindings) {
    const owner = WORKERS.find(({ name }) => name === (binding.script_name ?? worker.name))!;
    expect(WORKERS.indexOf(owner)).toBeLessThanOrEqual(WORKERS.indexOf(worker));
    const entry = readFileSync(of(owner).main, 'utf8');
    expect(entry).toContain(`export { ${binding.class_name} } from`);
  }
});

it('every class of objects has a migration where it lives, and none elsewhere', () => {
  for (const worker of WORKERS) {
    const classes = new Set<string>();
    for (const { new_sqlite_classes = [], deleted_classes = [] } of of(worker).migrations) {
      for (const name of new_sqlite_classes) classes.add(name);
      for (const name of deleted_classes) classes.delete(name);
    }
    const entry = readFileSync(of(worker).main, 'utf8');
    const exported = [...entry.matchAll(/^export \{ (\w+) \} from '\.\.\/durable-objects\//gm)].map(
      ([, name]) => name!,
    );
    expect([...classes].sort()).toEqual(exported.sort());
  }
});

it('one Worker has an address, and those that sweep do so every five minutes', () => {
  for (const worker of WORKERS) {
    expect(of(worker).workers_dev).toBe(worker === API ? undefined : false);
    expect(of(worker).triggers.crons ?? []).toEqual(worker.sweeps ? ['*/5 * * * *'] : []);
  }
});
