import type { CopyEnd, CopyState, CopyTarget } from '../../src/platform/sources/copy.ts';
import { copyText, currentVersion } from './sources.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

/** In place of the client of other people's servers: what a copy is made by. */
export interface SimulatedClient {
  readonly world: World;
  readonly caller: Invocation;
}

const PARTS = 3;
const PART_BYTES = 100;
const failed = (kind: 'timeout' | 'changed'): CopyEnd => ({
  kind: 'failed',
  error: { kind, message: `The source: ${kind}.` },
});

/**
 * In place of `copyRecording`: takes its time, in several calls where the server pins its file, and fails. The object
 * is whole or not there.
 */
export async function copyRecording(
  { world, caller }: SimulatedClient,
  url: string,
  { bucket, key, signal, save }: CopyTarget,
  state?: CopyState,
): Promise<CopyEnd> {
  const { time, faults } = world;
  const recording = world.recordings.get(url)!;
  if (await bucket.head(key)) {
    await save(undefined);
    return { kind: 'whole' };
  }
  const version = state ? Number(state.validator) : currentVersion(world, recording);
  for (let copiedBytes = state?.copiedBytes ?? 0; copiedBytes < PARTS * PART_BYTES; ) {
    await caller.sleep(time.between(10, 40_000));
    if (signal.aborted) {
      await save(undefined);
      return { kind: 'unwanted' };
    }
    if (faults.chance(0.1)) return failed('timeout');
    if (recording.fate !== 'farm' && currentVersion(world, recording) !== version && time.chance(0.5)) {
      await save(undefined);
      return failed('changed');
    }
    copiedBytes += PART_BYTES;
    if (recording.fate === 'copied') continue;
    const part = { uploadId: 'upload', noteKey: 'note', parts: [] };
    await save({ ...part, copiedBytes, sizeBytes: PARTS * PART_BYTES, validator: String(version) });
    if (time.chance(0.2)) return { kind: 'unfinished' };
  }
  await bucket.put(key, copyText(url, version));
  await save(undefined);
  return { kind: 'whole' };
}
