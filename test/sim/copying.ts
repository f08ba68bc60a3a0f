import type { CopyEnd, CopyState, CopyTarget } from '../../src/platform/sources/copy.ts';
import { copyText, currentVersion } from './sources.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

/** Replaces the HTTP client of a copy: the simulation and the calling invocation. */
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
 * Replaces `copyRecording`: it is slow, needs several calls if the server identifies its file, and may fail. The object
 * is stored completely or not at all.
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
    if (recording.behaviour !== 'farm' && currentVersion(world, recording) !== version && time.chance(0.5)) {
      await save(undefined);
      return failed('changed');
    }
    copiedBytes += PART_BYTES;
    if (recording.behaviour === 'copied') continue;
    const part = { uploadId: 'upload', noteKey: 'note', parts: [] };
    await save({ ...part, copiedBytes, sizeBytes: PARTS * PART_BYTES, validator: String(version) });
    if (time.chance(0.2)) return { kind: 'unfinished' };
  }
  await bucket.put(key, copyText(url, version));
  await save(undefined);
  return { kind: 'whole' };
}
