import type { BlockReader } from './block-reader.ts';

/** Bytes looked at in one go. */
const STEP_BYTES = 1 << 16;

/** The first place in `[from, end)` with a byte that is not zero; `end` where there is none. */
export async function skipZeros(reader: BlockReader, from: number, end: number): Promise<number> {
  for (let at = from; at < end; ) {
    const view = await reader.peek(at, Math.min(STEP_BYTES, end - at));
    if (view.length === 0) return end;
    const zeros = view.findIndex((byte) => byte !== 0);
    if (zeros >= 0) return Math.min(at + zeros, end);
    at += view.length;
  }
  return end;
}
