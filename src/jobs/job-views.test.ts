import { describe, expect, it } from 'vitest';
import { useJobs } from '../../test/helpers/job-world.ts';
import type { JobView, JobWatchItem } from './app-services.ts';
import { LEASE_MS } from './dispatch.ts';
import {
  attemptToRead,
  FINAL_EVENT_ID,
  HEARTBEAT_MS,
  MAX_POLL_MS,
  MAX_WATCH_MS,
  SharedReads,
  watchJob,
} from './job-views.ts';

const job = (status: JobView['status'], progress?: number): JobView => ({
  id: 'job',
  kind: 'diarize',
  status,
  createdAt: 0,
  updatedAt: 0,
  progress,
});

/** Watches a job whose successive reads return `states`, on a clock that only sleeping advances. */
async function watch(states: readonly (JobView | undefined)[], afterId = -1, maxItems = Number.POSITIVE_INFINITY) {
  let nowMs = 0;
  let reads = 0;
  const items: JobWatchItem[] = [];
  const read = async () => states[Math.min(reads++, states.length - 1)];
  const sleep = async (ms: number) => {
    nowMs += ms;
  };
  const all = watchJob({ read, now: () => nowMs, sleep }, afterId, () => items.length < maxItems);
  for await (const item of all) items.push(item);
  return { items, reads, nowMs };
}
const short = (items: readonly JobWatchItem[]) =>
  items.map((item) => {
    if (item.kind === 'heartbeat') return 'heartbeat';
    return item.kind === 'status' ? `${item.id} ${item.job.status}` : `${item.id} ${item.progress}`;
  });
const run = [
  job('created'),
  job('created'),
  job('running', 0),
  job('running', 0.2),
  job('running', 0.1),
  job('running', 0.95),
];

describe('watchJob', () => {
  it('reports each status and each increase of the progress once, and ends with the job', async () => {
    const { items } = await watch([...run, job('succeeded')]);
    const expected = ['0 created', '20000 running', '20200 0.2', '20950 0.95', '21000 1', '30000 succeeded'];
    expect(short(items)).toEqual(expected);
    expect(FINAL_EVENT_ID).toBe(30000);
  });

  it('ends before the next read when the watcher loses its permission', async () => {
    let reads = 0;
    const read = async () => job('running', 0.1 * ++reads);
    const all = watchJob({ read, now: () => 0, sleep: async () => undefined }, -1, async () => reads < 2);
    const items: JobWatchItem[] = [];
    for await (const item of all) items.push(item);
    expect(reads).toBe(2);
    expect(short(items)).toEqual(['20000 running', '20100 0.1', '20200 0.2']);
  });

  it.each(['failed', 'canceled'] as const)('reports no full progress for a job that is %s', async (status) => {
    expect(short((await watch([job('running', 0.5), job(status)])).items).slice(-1)).toEqual([`30000 ${status}`]);
  });

  it('continues after the last event that the watcher has', async () => {
    expect(short((await watch([...run, job('succeeded')], 20200)).items)).toEqual([
      '20950 0.95',
      '21000 1',
      '30000 succeeded',
    ]);
    expect(short((await watch([job('succeeded')], 21000)).items)).toEqual(['30000 succeeded']);
  });

  it('ends when the job is deleted', async () => {
    expect(short((await watch([job('running', 0.5), undefined])).items)).toEqual(['20000 running', '20500 0.5']);
  });

  it('sends heartbeats, reads less often without changes, and ends after the maximum time', async () => {
    const { items, reads, nowMs } = await watch([job('running')]);
    const beats = short(items).filter((item) => item === 'heartbeat').length;
    expect(beats).toBeGreaterThan((0.7 * MAX_WATCH_MS) / (HEARTBEAT_MS + MAX_POLL_MS));
    expect(nowMs - MAX_WATCH_MS).toBeLessThanOrEqual(MAX_POLL_MS);
    expect(reads).toBeLessThan((1.1 * MAX_WATCH_MS) / MAX_POLL_MS);
  });

  it('stops when the listener is gone', async () => {
    expect((await watch([job('running')], -1, 2)).items).toHaveLength(2);
  });
});

describe('SharedReads', () => {
  it('reads once for a hundred callers in a second', async () => {
    let nowMs = 0;
    let reads = 0;
    const shared = new SharedReads<number>(900, () => nowMs);
    const read = async () => {
      await Promise.resolve();
      return ++reads;
    };
    const readAll = () => Promise.all(Array.from({ length: 100 }, () => shared.get('job', read)));
    await shared.get('job', read);
    for (let second = 1; second <= 5; second++) {
      nowMs = second * 1000;
      await readAll();
    }
    expect(reads).toBe(6);
  });

  it('does not wait long for a read that never ends', async () => {
    let nowMs = 0;
    const shared = new SharedReads<string>(900, () => nowMs);
    await shared.get('job', async () => 'old');
    nowMs = 1000;
    void shared.get('job', () => new Promise<string>(() => undefined));
    expect(await shared.get('job', async () => 'new')).toBe('old');
    nowMs = 7000;
    expect(await shared.get('job', async () => 'new')).toBe('new');
  });

  it('keeps a bounded number of values', async () => {
    const shared = new SharedReads<number>(900, () => 0);
    for (let i = 0; i < 1001; i++) await shared.get(`job-${i}`, async () => i);
    expect(await shared.get('job-0', async () => -1)).toBe(-1);
    expect(await shared.get('job-1000', async () => -1)).toBe(1000);
  });
});

describe('the attempt to read a recording', () => {
  const world = useJobs();
  const attempt = async () => attemptToRead(await world.row('ingest'), world.now)?.number;
  const begin = () => world.ports.store.begin({ step: 'ingest', jobId: world.id }, world.now + LEASE_MS, world.now);

  it('counts the attempt that is running or awaited', async () => {
    await world.create();
    await begin();
    expect(await attempt()).toBeUndefined();
    await world.ports.store.putBack(`${world.id}/ingest`, world.now + 15_000, false);
    expect(await attempt()).toBe(2);
    world.now += 15_000;
    await begin();
    expect(await attempt()).toBe(2);
    world.now += 10_000;
    await world.ports.store.keep(world.id, `${world.id}/ingest`, world.now + LEASE_MS);
    expect(await attempt()).toBe(2);
    await world.ports.store.putBack(`${world.id}/ingest`, world.now + 30_000, false);
    expect(await attempt()).toBe(3);
  });
});
