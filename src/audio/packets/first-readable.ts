import type { Part } from '../container.ts';
import { type AudioResult, ok } from '../result.ts';

/** Tracks that are tried: of one without a packet the whole file is walked to see that. */
const MOST_TRIED = 4;

/**
 * The first track that can be read. Films have their sound in several codings, some of which are not decoded, and
 * recorders leave tracks that nothing was written to. What is wrong with the first is said in any case.
 */
export async function firstReadable<T>(
  tracks: readonly T[],
  open: (track: T) => Promise<AudioResult<Part>>,
): Promise<AudioResult<Part>> {
  const [first, ...others] = tracks.slice(0, MOST_TRIED);
  const opened = await open(first);
  if (opened.ok || (opened.error.kind !== 'unsupported' && opened.error.kind !== 'no_samples')) return opened;
  const { kind, message } = opened.error;
  for (const track of others) {
    const other = await open(track);
    if (!other.ok) continue;
    const instead =
      kind === 'no_samples'
        ? 'An audio track of the file has no samples in it; another one was read instead.'
        : `${message} Another one of its audio tracks was read instead.`;
    const { warnings } = other.value;
    return ok({
      ...other.value,
      warnings: async (faults, end) => [instead, ...((await warnings?.(faults, end)) ?? [])],
    });
  }
  return opened;
}
