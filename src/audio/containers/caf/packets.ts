import type { BlockReader } from '../../block-reader.ts';
import { MAX_SCAN_SECONDS } from '../../container.ts';
import { type FramesFrom, SEEK_SECONDS } from '../../frame-stream.ts';
import { findSeekPoint, type SeekTable, SeekTableBuilder } from '../../seek-table.ts';
import type { CafPacketTable } from './header.ts';

/** Where the packets of a file with a packet table lie. */
export interface PacketMap {
  /** Places of packets in the data. */
  readonly seek: SeekTable;
  /** Places of the same packets' lengths in the packet table. */
  readonly lengths: SeekTable;
  readonly tableEndByte: number;
}

export interface PacketScan extends PacketMap {
  readonly packets: number;
  /** The file ends before the packets that the table has do. */
  readonly isTruncated: boolean;
}

/** Bytes of the table read at a time. */
const TABLE_BYTES = 2048;
/** A length is coded in groups of seven bits, the highest first; five groups are more than any packet needs. */
const MAX_LENGTH_BYTES = 5;
/** Longest packet taken; the decoders' bound. */
const MAX_PACKET_BYTES = 4 << 20;

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

/** Walks the packet table and notes places to start from. */
export async function scanPackets(
  reader: BlockReader,
  table: CafPacketTable,
  data: { readonly dataOffset: number; readonly dataBytes: number },
  { frameSamples, sampleRateHz }: { readonly frameSamples: number; readonly sampleRateHz: number },
): Promise<PacketScan> {
  const seek = new SeekTableBuilder(SEEK_SECONDS * sampleRateHz);
  const lengths = new SeekTableBuilder(SEEK_SECONDS * sampleRateHz);
  const endByte = data.dataOffset + data.dataBytes;
  const maxPackets = Math.min(table.packets, (MAX_SCAN_SECONDS * sampleRateHz) / frameSamples);
  let packets = 0;
  let offset = data.dataOffset;
  scan: for await (const batch of readLengths(reader, table.offset, table.endByte)) {
    for (const { bytes, at } of batch) {
      if (packets >= maxPackets || offset + bytes > endByte) break scan;
      seek.add(offset, packets * frameSamples);
      lengths.add(at, packets * frameSamples);
      offset += bytes;
      packets++;
    }
  }
  const isTruncated = packets < maxPackets;
  return { packets, isTruncated, seek: seek.build(), lengths: lengths.build(), tableEndByte: table.endByte };
}

/** The packets that `scanPackets` counted. */
export function mappedPackets(reader: BlockReader, map: PacketMap, frameSamples: number): FramesFrom {
  return async function* (fromFrame) {
    const point = findSeekPoint(map.seek, fromFrame * frameSamples);
    let frame = point.sample / frameSamples;
    let offset = point.offset;
    const from = findSeekPoint(map.lengths, fromFrame * frameSamples).offset;
    for await (const batch of readLengths(reader, from, map.tableEndByte)) {
      for (const { bytes } of batch) {
        if (frame++ >= fromFrame) yield (await reader.peek(offset, bytes)).subarray(0, bytes);
        offset += bytes;
      }
    }
  };
}
