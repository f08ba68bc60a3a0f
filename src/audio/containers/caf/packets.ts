import type { BlockReader } from '../../block-reader.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
import { findSeekPoint, type SeekTable, type SeekTableBuilder } from '../../seek-table.ts';
import type { CafPacketTable } from './header.ts';

/** Where the coded data and the lengths of their packets lie. Plain JSON. */
export interface PacketPlaces {
  readonly table: Pick<CafPacketTable, 'packets' | 'offset' | 'endByte'>;
  readonly dataOffset: number;
  readonly dataEndByte: number;
}

/** Data between two of the places of the table that are noted. */
export const MARK_BYTES = 1 << 18;

/** Bytes of the table read at a time. */
const TABLE_BYTES = 2048;
/** A length is coded in groups of seven bits, the highest first; five groups are more than any packet needs. */
const MAX_LENGTH_BYTES = 5;

interface PacketLength {
  readonly bytes: number;
  /** Place of the length in the packet table. */
  readonly at: number;
}

/** The lengths in the table, in order; ends where one is none. */
async function* readLengths(reader: BlockReader, from: number, endByte: number): AsyncGenerator<PacketLength[]> {
  for (let position = from; position < endByte; ) {
    const wanted = Math.min(TABLE_BYTES, endByte - position);
    const view = (await reader.peek(position, wanted)).subarray(0, wanted);
    const isEnd = position + view.length >= endByte;
    const lengths: PacketLength[] = [];
    let at = 0;
    while (at < view.length && (isEnd || at + MAX_LENGTH_BYTES <= view.length)) {
      const first = at;
      let bytes = 0;
      while (at < view.length && at - first < MAX_LENGTH_BYTES && view[at] & 0x80)
        bytes = bytes * 128 + (view[at++] & 0x7f);
      if (at === view.length || at - first === MAX_LENGTH_BYTES) break;
      bytes = bytes * 128 + view[at++];
      if (bytes > MAX_PACKET_BYTES) break;
      lengths.push({ bytes, at: position + first });
    }
    if (lengths.length === 0) return;
    yield lengths;
    position += at;
  }
}

/** Walks all packets, and notes by the place of a packet in the data where the table has its length. */
export async function* walkFromStart(
  reader: BlockReader,
  places: PacketPlaces,
  marks: SeekTableBuilder,
): AsyncGenerator<{ readonly packets: readonly RawPacket[] }> {
  let left = places.table.packets;
  let offset = places.dataOffset;
  for await (const batch of readLengths(reader, places.table.offset, places.table.endByte)) {
    const packets: RawPacket[] = [];
    for (const { bytes, at } of batch) {
      if (left-- <= 0 || offset + bytes > places.dataEndByte) break;
      marks.add(at, offset);
      packets.push({ offset, length: bytes, entry: offset });
      offset += bytes;
    }
    if (packets.length > 0) yield { packets };
    if (packets.length < batch.length) return;
  }
}

/** Walks the packets from one on. @param entry its place in the data @param marks as `walkFromStart` noted them */
export async function* walkFrom(
  reader: BlockReader,
  places: PacketPlaces,
  marks: SeekTable,
  entry: number,
): PacketWalk {
  const mark = findSeekPoint(marks, entry);
  let offset = mark.sample;
  for await (const batch of readLengths(reader, mark.offset, places.table.endByte)) {
    const packets: RawPacket[] = [];
    for (const { bytes } of batch) {
      if (offset + bytes > places.dataEndByte) break;
      if (offset >= entry) packets.push({ offset, length: bytes });
      offset += bytes;
    }
    if (packets.length > 0) yield { packets };
  }
}
