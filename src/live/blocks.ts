import { LIVE, SAMPLE_RATE_HZ } from './parameters.ts';

/** Blocks of a tenth of a second that embeddings can be taken of, see `Ear`. */
export interface Blocks {
  readonly blockSamples: number;
  readonly blocks: { readonly from: number; readonly to: number };
  embed(blocks: readonly number[]): Promise<Float32Array | undefined>;
}

/**
 * The blocks inside [fromSample, toSample) of which most frames are kept; undefined where they are too little speech for an embedding.
 *
 * @param keeps whether a frame of the stream is of the speech that is wanted
 */
export function keptBlocks(
  { blockSamples, blocks: there }: Blocks,
  fromSample: number,
  toSample: number,
  frameShiftSamples: number,
  keeps: (frame: number) => boolean,
): { readonly blocks: readonly number[]; readonly seconds: number } | undefined {
  const first = Math.max(there.from, Math.ceil(fromSample / blockSamples));
  const last = Math.min(there.to, Math.floor(toSample / blockSamples));
  const blocks: number[] = [];
  for (let block = first; block < last; block++) {
    const from = Math.ceil((block * blockSamples) / frameShiftSamples);
    const to = Math.ceil(((block + 1) * blockSamples) / frameShiftSamples);
    let kept = 0;
    for (let frame = from; frame < to; frame++) if (keeps(frame)) kept++;
    if (kept >= LIVE.minBlockShare * (to - from)) blocks.push(block);
  }
  const seconds = (blocks.length * blockSamples) / SAMPLE_RATE_HZ;
  return seconds < LIVE.minVoiceSeconds ? undefined : { blocks, seconds };
}
