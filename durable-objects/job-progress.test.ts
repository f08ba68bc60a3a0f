import { expect, it, vi } from 'vitest';
import type { ProgressRpc } from '../src/platform/progress.ts';

const looks = vi.hoisted(() => ({ count: 0 }));
vi.mock('cloudflare:workers', () => ({
  DurableObject: class {
    constructor(
      readonly ctx: unknown,
      readonly env: unknown,
    ) {}
  },
}));
vi.mock('../src/services.ts', () => ({
  jobPorts: () => ({
    work: 'v1',
    now: () => Date.now(),
    log: () => {},
    store: {
      find: async () => ({ id: 'one', status: 'running', shardCount: 2, durationSeconds: 600 }),
      isStranded: async () => false,
      overdue: async () => {
        looks.count++;
        return { rows: [] };
      },
    },
  }),
}));

/** By its name only: the class is typed for workerd, and this file for Node. */
const { JobProgress } = await vi.importActual<{
  readonly JobProgress: new (state: object, env: object) => ProgressRpc;
}>('./job-progress.ts');

/** An object whose job has two parts, one of them there, and what is known of its alarm. */
async function begun() {
  const alarm: { at: number | null } = { at: null };
  const exec = (query: string) => ({
    toArray: () => (query.startsWith('SELECT id') ? [{ id: 'one', shard_count: 2 }] : []),
    one: () => ({ parts: 1 }),
  });
  const storage = {
    sql: { exec },
    transactionSync: (work: () => void) => work(),
    getAlarm: async () => alarm.at,
    setAlarm: async (at: number) => {
      alarm.at = at;
    },
  };
  const progress = new JobProgress({ storage }, {});
  await progress.begin('one', 2);
  return { progress, alarm };
}

it('looks after its job with the next part where its alarm was given up: what was lost waited for the sweep', async () => {
  const { progress, alarm } = await begun();
  const first = alarm.at;
  expect(first).toBeGreaterThan(Date.now());
  await progress.partDone('one', 0, 'v1');
  expect([alarm.at, looks.count]).toEqual([first, 0]);
  for (const lost of [null, Date.now() - 10 * 60_000]) {
    alarm.at = lost;
    looks.count = 0;
    await progress.partDone('one', 0, 'v1');
    expect(alarm.at).toBeGreaterThan(Date.now());
    expect(looks.count).toBe(1);
  }
});
