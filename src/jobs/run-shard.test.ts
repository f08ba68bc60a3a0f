import { describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { probeAudio } from '../audio/index.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { Mutex } from './mutex.ts';
import { PlanMemory } from './plan-memory.ts';
import type { JobPorts, JobRecord } from './ports.ts';
import { runShard } from './run-shard.ts';
import { SourceReadError } from './source-error.ts';

const SECOND = 16_000;

/** A service in which one job of two shards has been planned. */
async function plannedJob(sources: Partial<JobPorts['sources']>, source: object = {}) {
  const samples = recording([
    [[1], 18],
    [[2], 22],
  ]);
  const bytes = wav16(samples, SECOND);
  let closed = 0;
  const open = () => ({
    sizeBytes: bytes.length,
    read: async (offset: number, length: number) => bytes.slice(offset, offset + length),
    close: () => void closed++,
  });
  const index = await probeAudio(open(), {} as never);
  if (!index.ok) throw new Error('no recording');
  const shards = [0, 20 * SECOND].map((startSample) => ({ startSample, endSample: startSample + 20 * SECOND }));
  const plan = { source, index: index.value, totalSamples: samples.length, shards };
  const parts = new Map<string, Uint8Array>();
  const ports = {
    store: { find: async () => ({ status: 'running' }), renewLease: async () => {}, settle: async () => {} },
    objects: {
      exists: async () => false,
      get: async () => new TextEncoder().encode(JSON.stringify(plan)),
      put: async (key: string, part: Uint8Array) => void parts.set(key, part.slice()),
    },
    sources: { open, ...sources },
    codecs: () => ({}),
    engine: async () => ({ ...fakePorts(), memoryBytes: () => 0 }),
    progress: { partDone: async () => true, report: async () => {} },
    pause: async () => {},
    sleep: async () => {},
    log: () => {},
    now: () => 0,
    work: 'v',
    plans: new PlanMemory(),
  } as unknown as JobPorts;
  const job = { id: 'job', status: 'running', request: { model: 'precision-2' } } as unknown as JobRecord;
  const shard = { ...shards[0]!, totalSamples: samples.length };
  const settings = settingsOf('precision-2');
  const whole = async () =>
    encodePart(await analyseShard(blocksOf(samples), shard, fakePorts(), settings, async () => undefined));
  return { run: () => runShard(ports, new Mutex(() => 0), job, 0), open, parts, whole, closed: () => closed };
}

it('hears the windows that begin in a shard to their end: what is told at its border is what one whole shard tells', async () => {
  const { run, parts, whole, closed } = await plannedJob({});
  await run();
  expect([...parts.keys()]).toEqual(['work/job/part-v-00000']);
  expect(parts.get('work/job/part-v-00000')).toEqual(await whole());
  expect(closed()).toBe(1);
});

describe('a recording that is no longer the same file at every read', () => {
  const http = { kind: 'http', url: 'http://example.com/a.wav', validator: '"1"', sizeBytes: 1 };
  const read = async () => {
    throw new SourceReadError({ kind: 'changed', message: 'It changed.' });
  };

  it('is analysed from a copy of the one that was planned, where that can still be had', async () => {
    const copied: unknown[] = [];
    const planned = await plannedJob(
      {
        open: (ref) => (ref.kind === 'http' ? { sizeBytes: 1e9, read } : planned.open()),
        copy: async (ref, key) => {
          copied.push([ref, key]);
          return { ok: true, value: { kind: 'object', key: 'copy', sizeBytes: 1 } };
        },
      },
      http,
    );
    await planned.run();
    expect(copied).toEqual([[http, 'work/job/source']]);
    expect(planned.parts.get('work/job/part-v-00000')).toEqual(await planned.whole());
  });

  it.each([
    ['changed', 'changed'],
    ['unreachable', 'unreachable'],
    ['too_slow', 'changed'],
  ] as const)('with a copy that is %s fails as %s', async (kind, expected) => {
    const { run } = await plannedJob(
      { open: () => ({ sizeBytes: 1e9, read }), copy: async () => ({ ok: false, error: { kind, message: 'No.' } }) },
      http,
    );
    await expect(run()).rejects.toMatchObject({ error: { kind: expected } });
  });
});
