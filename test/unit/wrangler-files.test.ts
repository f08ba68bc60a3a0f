import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { QUEUES } from '../../client/deploy/config.ts';
import { loadWrangler } from '../../client/local/bundle.ts';
import { API, JOBS, LIVE, type ServiceWorker, WORKERS } from '../../client/workers.ts';
import { root } from '../helpers/local-process.ts';

/** The properties of a wrangler file that are tested, as wrangler parses them. */
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
const configOf = (worker: ServiceWorker): Config => configs.get(worker)!;
beforeAll(async () => {
  const { unstable_readConfig } = await loadWrangler();
  for (const worker of WORKERS) {
    configs.set(worker, unstable_readConfig({ config: join(root, worker.config) }) as unknown as Config);
  }
});

/** Settings that all Workers share. */
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

it('the wrangler files share compatibility flags, CPU limit, logging and storage', () => {
  for (const worker of WORKERS) expect(configOf(worker).name).toBe(worker.name);
  expect(common(configOf(API))).toMatchObject({
    compatibilityFlags: ['global_fetch_strictly_public'],
    limits: { cpu_ms: 300_000 },
    observability: { enabled: true, logs: { enabled: true, invocation_logs: false } },
    databases: [['DB', expect.any(String), 'rollcall']],
    buckets: [['BUCKET', 'rollcall']],
  });
  for (const worker of [JOBS, LIVE]) expect(common(configOf(worker))).toEqual(common(configOf(API)));
  expect(configOf(API).vars).toEqual({ OUTPUT_TTL_SECONDS: '86400' });
  expect(configOf(JOBS).vars).toEqual(configOf(API).vars);
});

it('every queue, also the dead letter queue, has one consumer', () => {
  const producers = configOf(API).queues.producers;
  expect(configOf(JOBS).queues.producers).toEqual(producers);
  const consumed = WORKERS.flatMap((worker) => configOf(worker).queues.consumers ?? []);
  expect(consumed.map(({ queue }) => queue).sort()).toEqual([...QUEUES].sort());
  const deadLetters = 'rollcall-dead';
  expect(producers?.map(({ queue }) => queue).sort()).toEqual(QUEUES.filter((queue) => queue !== deadLetters).sort());
  // A message without a dead letter queue would be lost, and its job would not end.
  for (const { queue, dead_letter_queue } of consumed)
    expect(dead_letter_queue).toBe(queue === deadLetters ? undefined : deadLetters);
});

it('Durable Object bindings name classes of the same Worker or of one deployed earlier', () => {
  const bindings = WORKERS.flatMap((worker) =>
    configOf(worker).durable_objects.bindings.map((binding) => ({ worker, binding })),
  );
  expect(bindings.map(({ binding }) => binding.class_name)).toContain('LiveStream');
  for (const { worker, binding } of bindings) {
    const owner = WORKERS.find(({ name }) => name === (binding.script_name ?? worker.name))!;
    expect(WORKERS.indexOf(owner)).toBeLessThanOrEqual(WORKERS.indexOf(worker));
    const entry = readFileSync(configOf(owner).main, 'utf8');
    expect(entry).toContain(`export { ${binding.class_name} } from`);
  }
});

it('each Worker has migrations for exactly its Durable Object classes', () => {
  for (const worker of WORKERS) {
    const classes = new Set<string>();
    for (const { new_sqlite_classes = [], deleted_classes = [] } of configOf(worker).migrations) {
      for (const name of new_sqlite_classes) classes.add(name);
      for (const name of deleted_classes) classes.delete(name);
    }
    const entry = readFileSync(configOf(worker).main, 'utf8');
    const exported = [...entry.matchAll(/^export \{ (\w+) \} from '\.\.\/durable-objects\//gm)].map(
      ([, name]) => name!,
    );
    expect([...classes].sort()).toEqual(exported.sort());
  }
});

it('only the API has an address, and Workers with sweeps run them every five minutes', () => {
  for (const worker of WORKERS) {
    expect(configOf(worker).workers_dev).toBe(worker === API ? undefined : false);
    expect(configOf(worker).triggers.crons ?? []).toEqual(worker.sweeps ? ['*/5 * * * *'] : []);
  }
});
