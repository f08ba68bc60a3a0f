import type { IndexBase } from '../container.ts';
import type { AudioResult } from '../result.ts';

/** Tracks that are tried: of one without a packet the whole file is walked to see that. */
const MOST_TRIED = 4;

/**
 * The first track that can be read. Films have their sound in several codings, some of which are not decoded, and recorders leave tracks that
 * nothing was written to. What is wrong with the first is said in any case.
 */
export async function firstReadable<T, I extends IndexBase>(
  tracks: readonly T[],
  probe: (track: T) => Promise<AudioResult<I>>,
): Promise<AudioResult<I>> {
  const [first, ...others] = tracks.slice(0, MOST_TRIED);
  const probed = await probe(first);
  if (probed.ok || (probed.error.kind !== 'unsupported' && probed.error.kind !== 'no_samples')) return probed;
  for (const track of others) {
    const other = await probe(track);
    if (!other.ok) continue;
    const { warning } = other.value;
    const instead =
      probed.error.kind === 'no_samples'
        ? 'An audio track of the file has no samples in it; another one was read instead.'
        : `${probed.error.message} Another one of its audio tracks was read instead.`;
    return { ok: true, value: { ...other.value, warning: warning === undefined ? instead : `${instead} ${warning}` } };
  }
  return probed;
}
