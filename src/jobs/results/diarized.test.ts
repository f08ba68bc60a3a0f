import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startStorage } from '../../../test/helpers/database.ts';
import type { TrackSpill } from '../../diarization/tracks.ts';
import { createObjectStore } from '../../platform/r2-objects.ts';
import { removeWork } from '../fail.ts';
import { workPrefix } from '../keys.ts';
import type { JobPorts } from '../ports.ts';
import { type Assembly, diarizeParts } from './diarized.ts';

/** Where each assembly that was begun puts its speakers' tracks down: only those of many hours are. */
const spills = vi.hoisted((): TrackSpill[] => []);
vi.mock('../../diarization/index.ts', async (original) => ({
  ...(await original<object>()),
  assemble: async (_parts: unknown, _audio: unknown, _settings: unknown, _request: unknown, options: object) => {
    spills.push((options as { trackSpill: TrackSpill }).trackSpill);
    return { ok: true, value: { loudestDb: 0 } };
  },
}));

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

it("two copies of an assembly read their own speakers' tracks: the slower one's first try was stored as the other's probabilities", async () => {
  const ports = { objects: createObjectStore(storage.bucket), plda: async () => undefined } as unknown as JobPorts;
  const job = { id: 'job', kind: 'diarize', request: { model: 'precision-2', speakerProbability: true } };
  const plan = { index: { channels: 1, durationSeconds: 1 }, totalSamples: 16_000, shards: [] };
  const begin = async (): Promise<TrackSpill> => {
    await diarizeParts({ ports, job, plan, pulse: async () => {} } as unknown as Assembly, { voices: false });
    return spills.at(-1)!;
  };
  const left = () => ports.objects.list(workPrefix('job'), 10);
  const [fast, slow] = [await begin(), await begin()];
  await fast.write(0, Uint8Array.of(1, 2, 3));
  await slow.write(0, Uint8Array.of(7, 8, 9));
  expect(await fast.read(0, 1, 2)).toEqual(Uint8Array.of(2, 3));
  expect(await slow.read(0, 1, 2)).toEqual(Uint8Array.of(8, 9));
  // A run's own later tries take the place of its earlier ones.
  await fast.write(0, Uint8Array.of(4, 5, 6));
  expect(await fast.read(0, 0, 3)).toEqual(Uint8Array.of(4, 5, 6));
  expect(await left()).toHaveLength(2);
  // The other one died.
  await removeWork(ports, 'job');
  expect(await left()).toEqual([]);
});
