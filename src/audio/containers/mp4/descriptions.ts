import type { BlockReader } from '../../block-reader.ts';
import { u32be } from '../../bytes.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { type AudioResult, ok } from '../../result.ts';
import type { Mp4Track } from './movie.ts';
import { codecOfEntry } from './sample-entry.ts';

/** How the packets of a track are coded. */
export interface Descriptions {
  readonly codec: TrackCodec;
  /** Numbers, from 1, of descriptions of another coding: what they stand for cannot be decoded with the rest. */
  readonly others: readonly number[];
}

/**
 * A track may have several descriptions (ISO/IEC 14496-12 §8.5.2), each for some of its packets, as sound has that was
 * joined without coding it again. That of the first packets counts.
 *
 * @param inFragments the description of packets in fragments that name none
 */
export async function readDescriptions(
  reader: BlockReader,
  { sampleEntries, tables, timescale }: Mp4Track,
  inFragments = 1,
): Promise<AudioResult<Descriptions>> {
  let first = 1;
  if (sampleEntries.length > 1) {
    const isTabled = tables !== undefined && tables.sizes.count > 0 && tables.runs.count > 0;
    const run = isTabled ? (await reader.peekTable(tables.runs.offset, 12)).slice(0, 12) : undefined;
    first = run?.length === 12 ? u32be(run, 8) : inFragments;
  }
  const own = sampleEntries[first - 1] ?? sampleEntries[0] ?? new Uint8Array(0);
  const codec = codecOfEntry(own, timescale);
  if (!codec.ok) return codec;
  const others: number[] = [];
  for (const [i, entry] of sampleEntries.entries()) {
    if (entry === own) continue;
    const other = codecOfEntry(entry, timescale);
    if (!other.ok || codingOf(other.value) !== codingOf(codec.value)) others.push(i + 1);
  }
  return ok({ codec: codec.value, others });
}

/** Bytes of object type, rate and channels of AAC: what follows them the packets say again. */
const AAC_BYTES = 2;

const codingOf = (track: TrackCodec): string =>
  JSON.stringify({
    ...track,
    extraData: [...track.extraData.subarray(0, track.codec === 'aac' ? AAC_BYTES : undefined)],
  });
