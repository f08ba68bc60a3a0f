import type { BlockReader } from '../../block-reader.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
import type { CafPacketTable } from './header.ts';

/** Where the coded data and the lengths of their packets lie. */
export interface PacketPlaces {
  readonly table: Pick<CafPacketTable, 'packets' | 'offset' | 'endByte'>;
  readonly dataOffset: number;
  readonly dataEndByte: number;
}

/** Bytes of the table read at a time. */
const TABLE_BYTES = 2048;
/** A length is coded in groups of seven bits, the highest first; five groups are more than any packet needs. */
const MAX_LENGTH_BYTES = 5;

/** The lengths in the table, in order; ends where one is none. */
async function* readLengths(reader: BlockReader, from: number, endByte: number): AsyncGenerator<number[]> {
  for (let position = from; position < endByte; ) {
    const wanted = Math.min(TABLE_BYTES, endByte - position);
    const view = (await reader.peekTable(position, wanted)).subarray(0, wanted);
    const isEnd = position + view.length >= endByte;
    const lengths: number[] = [];
    let at = 0;
    while (at < view.length && (isEnd || at + MAX_LENGTH_BYTES <= view.length)) {
      const first = at;
      let bytes = 0;
      while (at < view.length && at - first < MAX_LENGTH_BYTES && view[at] & 0x80)
        bytes = bytes * 128 + (view[at++] & 0x7f);
      if (at === view.length || at - first === MAX_LENGTH_BYTES) break;
      bytes = bytes * 128 + view[at++];
      if (bytes > MAX_PACKET_BYTES) break;
      lengths.push(bytes);
    }
    if (lengths.length === 0) return;
    yield lengths;
    position += at;
  }
}

/** The packets, from the one at `entry` in the data on. */
export async function* walkPackets(reader: BlockReader, places: PacketPlaces, entry = places.dataOffset): PacketWalk {
  let left = places.table.packets;
  let offset = places.dataOffset;
  for await (const batch of readLengths(reader, places.table.offset, places.table.endByte)) {
    const packets: RawPacket[] = [];
    for (const length of batch) {
      if (left-- <= 0 || offset + length > places.dataEndByte) {
        if (packets.length > 0) yield { packets };
        return;
      }
      if (offset >= entry) packets.push({ offset, length, entry: offset });
      offset += length;
    }
    if (packets.length > 0) yield { packets };
  }
}
