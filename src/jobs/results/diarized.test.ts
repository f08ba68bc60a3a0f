import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/database.ts';
import { createObjectStore } from '../../platform/r2-objects.ts';
import { removeWork } from '../fail.ts';
import { workPrefix } from '../keys.ts';
import { trackSpillOf } from './diarized.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

it("two copies of an assembly read their own speakers' tracks: the slower one's first try was stored as the other's probabilities", async () => {
  const objects = createObjectStore(storage.bucket);
  const left = () => objects.list(workPrefix('job'), 10);
  const [fast, slow] = [trackSpillOf(objects, 'job'), trackSpillOf(objects, 'job')];
  await fast.write(0, Uint8Array.of(1, 2, 3));
  await slow.write(0, Uint8Array.of(7, 8, 9));
  expect(await fast.read(0, 1, 2)).toEqual(Uint8Array.of(2, 3));
  expect(await slow.read(0, 1, 2)).toEqual(Uint8Array.of(8, 9));
  // A run's own later tries take the place of its earlier ones.
  await fast.write(0, Uint8Array.of(4, 5, 6));
  expect(await fast.read(0, 0, 3)).toEqual(Uint8Array.of(4, 5, 6));
  expect(await left()).toHaveLength(2);
  // The other one died.
  await removeWork({ objects }, 'job');
  expect(await left()).toEqual([]);
});
