import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { indexOf, useJobs, WORK } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { partKey } from './keys.ts';
import { Mutex } from './mutex.ts';
import type { JobPorts, SourceRef } from './ports.ts';
import { runShard } from './run-shard.ts';

/** On a real database and a real bucket, with a real server that the recording is read from. */
const world = useJobs();
const SECOND = 16_000;
const SAMPLES = recording([
  [[1], 18],
  [[2], 22],
]);
const BYTES = wav16(SAMPLES, SECOND);
const SHARDS = [0, 20 * SECOND].map((startSample) => ({ startSample, endSample: startSample + 20 * SECOND }));
/** What the first shard gives where the whole recording is at hand. */
let whole: Uint8Array;
let server: TestServer;
let handler: Handler;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  const shard = { ...SHARDS[0]!, totalSamples: SAMPLES.length };
  const settings = settingsOf('precision-2');
  whole = encodePart(await analyseShard(blocksOf(SAMPLES), shard, fakePorts(), settings, async () => undefined));
});
afterAll(() => server?.close());
beforeEach(() => {
  server.requests.length = 0;
});

/** The first of two shards of a job in work. */
async function run(source: SourceRef, ports: JobPorts = world.ports): Promise<void> {
  const plan = { source, index: await indexOf(BYTES), totalSamples: SAMPLES.length, shards: SHARDS };
  const job = await world.running(plan);
  await runShard(ports, new Mutex(() => 0), job, 0);
}
const part = () => world.ports.objects.get(partKey(world.id, 0, WORK));
/** Keys of the job's parts and copies. */
const made = async () => (await world.workKeys()).filter((key) => !key.includes('/plan-'));

it('hears the windows that begin in a shard to their end: what is told at its border is what one whole shard tells', async () => {
  const { objects, sources } = world.ports;
  const key = `media/${world.accountId}/a`;
  await objects.put(key, BYTES);
  let closed = 0;
  const open: typeof sources.open = (ref) => {
    const source = sources.open(ref);
    const close = () => {
      closed++;
      source.close?.();
    };
    return { ...source, close };
  };
  await run({ kind: 'object', key, sizeBytes: BYTES.length }, { ...world.ports, sources: { ...sources, open } });
  expect(await made()).toEqual([`work/${world.id}/part-v-00000`]);
  expect(await part()).toEqual(whole);
  expect(closed).toBe(1);
  expect(await world.steps()).toEqual(['shard/1']);
});

describe('a recording that is no longer the same file at every read', () => {
  const planned = (): SourceRef => ({
    kind: 'http',
    url: `${server.origin}/a.wav`,
    validator: '"1"',
    sizeBytes: BYTES.length,
  });
  const copies = () => server.requests.filter(({ range }) => range === undefined).length;
  /** A server whose ranges are of another file, and which does that where the whole is asked for. */
  const withWhole =
    (serveWhole: Handler): Handler =>
    (request, response) => {
      if (request.headers.range === undefined) serveWhole(request, response);
      else serveRanges(request, response, { bytes: BYTES, etag: '"2"' });
    };

  it('is analysed from a copy of the one that was planned, where that can still be had', async () => {
    handler = withWhole((_request, response) => {
      // Every other answer is of the other file.
      response.writeHead(200, { ETag: copies() % 2 === 0 ? '"1"' : '"2"' }).end(BYTES);
    });
    await run(planned());
    const [first, copy, ...others] = await made();
    expect([first, others]).toEqual([`work/${world.id}/part-v-00000`, []]);
    expect(copy).toMatch(new RegExp(`^work/${world.id}/source-`));
    expect(Buffer.compare((await world.ports.objects.get(copy!))!, BYTES)).toBe(0);
    expect(await part()).toEqual(whole);
    expect(await world.steps()).toEqual(['shard/1']);
  });

  it.each<[string, string, number, Handler]>([
    ['changed', 'changed', 8, (request, response) => serveRanges(request, response, { bytes: BYTES, etag: '"2"' })],
    ['unreachable', 'unreachable', 1, (_request, response) => void response.destroy()],
    [
      'too slow',
      'changed',
      1,
      (_request, response) => {
        response.writeHead(200, { ETag: '"1"' });
        const drip = () => {
          if (response.write(new Uint8Array(10)) && !response.destroyed) setTimeout(drip, 5);
        };
        drip();
      },
    ],
  ])('with a copy that is %s fails as %s', async (_what, kind, asked, serveWhole) => {
    handler = withWhole(serveWhole);
    const ports = { ...world.ports, sources: world.sources({ copyTimeoutMs: 20 }) };
    await expect(run(planned(), ports)).rejects.toMatchObject({ name: 'SourceReadError', error: { kind } });
    expect(copies()).toBe(asked);
    expect([await made(), await world.steps()]).toEqual([[], ['shard/0', 'shard/1']]);
  });
});
