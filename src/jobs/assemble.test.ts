import { expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { assembleJob, withPulse } from './assemble.ts';
import { Mutex } from './mutex.ts';
import { PlanMemory } from './plan-memory.ts';
import type { JobPorts, JobRecord } from './ports.ts';

it('an output that takes long to be stored gives signs of life, and stops where the job has ended', async () => {
  let now = 0;
  let pulses = 0;
  const chunks = Array.from({ length: 100 }, (_, i) => String(i));
  const stored: string[] = [];
  const store = async (pulse: () => Promise<void>) => {
    for await (const chunk of withPulse(chunks, () => now, pulse)) {
      stored.push(chunk);
      now += 1000;
    }
  };
  await store(async () => {
    pulses++;
  });
  expect(stored).toEqual(chunks);
  expect(pulses).toBe(20);
  const gone = store(async () => {
    throw new Error('the job has ended');
  });
  await expect(gone).rejects.toThrow('the job has ended');
  expect(stored).toHaveLength(105);
});

it('an output that was written while its job was canceled is taken away again, and never that of a job that another copy has ended', async () => {
  const samples = recording([[[1], 12]]);
  const shard = { startSample: 0, endSample: samples.length, totalSamples: samples.length };
  const settings = settingsOf('precision-2');
  const part = encodePart(await analyseShard(blocksOf(samples), shard, fakePorts(), settings, async () => undefined));
  const plan = { index: { channels: 1, durationSeconds: 12 }, totalSamples: samples.length, shards: [shard] };
  const job = { id: 'job', kind: 'diarize', status: 'running', request: { model: 'precision-2' } };
  const left = async (statusNow: string) => {
    const stored = new Set<string>();
    const ports = {
      store: { find: async () => ({ ...job, status: statusNow }), succeed: async () => false },
      objects: {
        get: async () => new TextEncoder().encode(JSON.stringify(plan)),
        getRange: async (_key: string, offset: number, length: number) => part.slice(offset, offset + length),
        putStream: async (key: string, chunks: AsyncIterable<string>) => {
          for await (const _ of chunks);
          stored.add(key);
        },
        deleteMany: async (keys: readonly string[]) => {
          for (const key of keys) stored.delete(key);
        },
      },
      plda: async () => undefined,
      pause: async () => {},
      sleep: async () => {},
      log: () => {},
      now: () => 0,
      work: 'v',
      plans: new PlanMemory(),
    } as unknown as JobPorts;
    await assembleJob(ports, new Mutex(() => 0), job as unknown as JobRecord, 1);
    return [...stored];
  };
  expect(await left('canceled')).toEqual([]);
  expect(await left('succeeded')).toEqual(['outputs/job.json']);
});
