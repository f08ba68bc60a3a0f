import { afterAll, beforeAll, expect, it } from 'vitest';
import { memorySource } from '../../test/helpers/audio.ts';
import { recording } from '../../test/helpers/fake-models.ts';
import { useJobs } from '../../test/helpers/job-world.ts';
import { startStorage } from '../../test/helpers/storage.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import type { DiarizeOutput } from '../contract/outputs.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { removeWork } from './end-job.ts';
import { handleMessage } from './handle-message.ts';
import type { JobPorts } from './job-ports.ts';
import { Mutex } from './mutex.ts';
import { cancellationHint, trackSpillOf } from './results.ts';
import { outputKey, workPrefix } from './work-keys.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

it("two runs of an assembly read only their own speakers' tracks", async () => {
  const objects = createObjectStore(storage.bucket);
  const storedKeys = () => objects.list(workPrefix('job'), 10);
  const [fast, slow] = [trackSpillOf(objects, 'job'), trackSpillOf(objects, 'job')];
  await fast.write(0, Uint8Array.of(1, 2, 3));
  await slow.write(0, Uint8Array.of(7, 8, 9));
  expect(await fast.read(0, 1, 2)).toEqual(Uint8Array.of(2, 3));
  expect(await slow.read(0, 1, 2)).toEqual(Uint8Array.of(8, 9));
  // Later writes of a run replace its earlier ones.
  await fast.write(0, Uint8Array.of(4, 5, 6));
  expect(await fast.read(0, 0, 3)).toEqual(Uint8Array.of(4, 5, 6));
  expect(await storedKeys()).toHaveLength(2);
  // The other run crashed.
  await removeWork({ objects }, 'job');
  expect(await storedKeys()).toEqual([]);
});

it('warns of channels that cancel each other out, but not of quiet recordings', () => {
  const hint = /its 2 channels is very quiet.*opposite phase.*send a single channel\.$/;
  expect(cancellationHint(2, -127, 'nothing found')).toMatch(hint);
  // Artefacts of Vorbis when two channels cancel each other out.
  expect(cancellationHint(2, -36, 'nothing found')).toMatch(hint);
  expect(cancellationHint(2, -30, 'nothing found')).toBeUndefined();
  // Artefacts of AAC, a second of which the segmentation takes for speech.
  expect(cancellationHint(2, -75, 'something found')).toMatch(hint);
  expect(cancellationHint(2, -60, 'something found')).toBeUndefined();
  expect(cancellationHint(1, -127, 'nothing found')).toBeUndefined();
});

const world = useJobs();
/** Both sides of a call, each longer than a shard. */
const sideOf = (first: number) =>
  recording(Array.from({ length: 62 }, (_, turn) => [[first + (turn % 2)], 5] as [number[], number]));
const [LEFT, RIGHT] = [sideOf(1), sideOf(3)];

const interleaved = (...channels: readonly Float32Array[]) =>
  Float32Array.from({ length: channels.length * channels[0].length }, (_, i) => {
    return channels[i % channels.length][Math.floor(i / channels.length)];
  });

/** Runs a job on a WAV file through all its steps. */
async function diarized(channels: readonly Float32Array[], request: object): Promise<DiarizeOutput | undefined> {
  const bytes = wav16(interleaved(...channels), 16_000, channels.length);
  const source = { source: memorySource(bytes), identity: 'a file' };
  const ports: JobPorts = {
    ...world.ports,
    sources: { ...world.ports.sources, open: async () => ({ ok: true, value: source }) },
  };
  await world.create({ channels: 'separate', ...request });
  const run = (step: 'ingest' | 'assemble') =>
    handleMessage(ports, new Mutex(() => world.now), { step, jobId: world.id }, 1);
  for (let i = 0; i < channels.length; i++) await run('ingest');
  const { status, shardCount = 0 } = await world.record();
  if (status === 'running') {
    for (let shard = 0; shard < shardCount; shard++)
      await handleMessage(ports, new Mutex(() => world.now), { step: 'shard', jobId: world.id, shard }, 1);
    await ports.store.nextStep(world.id, ['analyse'], 'assemble', world.now);
    await run('assemble');
  }
  const stored = await ports.objects.get(outputKey(world.id));
  return stored && JSON.parse(new TextDecoder().decode(stored));
}

it('diarizes each channel separately, over several shards, with labels numbered across channels', async () => {
  const output = await diarized([LEFT, RIGHT], { exclusive: true });
  expect(await world.record()).toMatchObject({ status: 'succeeded', shardCount: 4, durationSeconds: 310 });
  const labels = new Set(output?.diarization.map(({ speaker, channel }) => `${speaker} ${channel}`));
  expect([...labels].sort()).toEqual(['SPEAKER_00 0', 'SPEAKER_01 0', 'SPEAKER_02 1', 'SPEAKER_03 1']);
  // Each channel has the same turns as a recording of that channel alone.
  for (const [channel, samples] of [LEFT, RIGHT].entries()) {
    world.another();
    const alone = await diarized([samples], { channels: undefined });
    const turns = output?.diarization.filter((turn) => turn.channel === channel);
    expect(turns?.map(({ start, end }) => [start, end])).toEqual(
      alone?.diarization.map(({ start, end }) => [start, end]),
    );
  }
  expect(output?.exclusiveDiarization?.some(({ channel }) => channel === 1)).toBe(true);
  const starts = output?.diarization.map(({ start }) => start) ?? [];
  expect(starts).toEqual([...starts].sort((a, b) => a - b));
  expect(output).not.toHaveProperty('warning');
}, 60_000);

it('warns if there is only one channel, and leaves out silent ones', async () => {
  const one = LEFT.subarray(0, 320_000);
  expect(await diarized([one], {})).toMatchObject({
    diarization: expect.arrayContaining([expect.objectContaining({ channel: 0 })]),
    warning: 'The recording has one channel.',
  });
  world.another();
  const output = await diarized([new Float32Array(one.length), one], {});
  expect(new Set(output?.diarization.map(({ speaker, channel }) => `${speaker} ${channel}`))).toEqual(
    new Set(['SPEAKER_00 1', 'SPEAKER_01 1']),
  );
  world.another();
  await diarized([new Float32Array(one.length), new Float32Array(one.length)], {});
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'no_speech' } });
}, 60_000);

it('refuses nine channels', async () => {
  await diarized(Array(9).fill(LEFT.subarray(0, 32_000)), {});
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'audio_too_many_channels' } });
});
