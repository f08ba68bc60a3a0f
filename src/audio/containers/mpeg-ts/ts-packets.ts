import type { BlockReader } from '../../block-reader.ts';
import { u16be } from '../../bytes.ts';

/** How the packets of a transport stream lie in a file: 188 bytes, or with a time or checksums beside them. */
export interface Layout {
  /** Bytes in front of the first sync byte. */
  readonly firstByte: number;
  readonly stride: number;
}

export const PACKET_BYTES = 188;
const STRIDES = [PACKET_BYTES, 192, 204];
const SYNC = 0x47;
/** Sync bytes that must follow one another at the same distance. */
const MIN_SYNCS = 5;
const LOST_SYNCS = 3;

/** Tells a transport stream by its sync bytes; it may begin inside a packet. */
export function findLayout(head: Uint8Array): Layout | undefined {
  for (const stride of STRIDES) {
    for (let first = 0; first < stride; first++) {
      if (head[first] === SYNC && hasSyncs(head, first, stride, MIN_SYNCS)) return { firstByte: first, stride };
    }
  }
  return undefined;
}

function hasSyncs(bytes: Uint8Array, first: number, stride: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (bytes[first + i * stride] !== SYNC) return false;
  return true;
}

/** One packet (ISO/IEC 13818-1 §2.4.3). */
export interface TsPacket {
  readonly position: number;
  readonly pid: number;
  /** A section or a PES packet begins here. */
  readonly isStart: boolean;
  readonly isScrambled: boolean;
  readonly counter: number;
  /** A view, valid until the next use of the reader. */
  readonly payload: Uint8Array;
}

/** How a walk over the packets ended. */
export type PacketsEnd = {
  /** Inside a packet. */
  isCut?: boolean;
};

/** The packets with a payload from `from` on. Where sync bytes are missing it continues at the next three in a row. */
export async function* tsPackets(
  reader: BlockReader,
  stride: number,
  from: number,
  end: PacketsEnd = {},
): AsyncGenerator<readonly TsPacket[]> {
  end.isCut = false;
  for (let position = from; position < reader.sizeBytes; ) {
    if (position + PACKET_BYTES > reader.sizeBytes) {
      end.isCut = (await reader.peek(position, 1))[0] === SYNC;
      return;
    }
    const view = await reader.peek(position, stride * LOST_SYNCS);
    const packets: TsPacket[] = [];
    let at = 0;
    while (at + PACKET_BYTES <= view.length && view[at] === SYNC && packets.length < MAX_BATCH) {
      const packet = parsePacket(view.subarray(at, at + PACKET_BYTES), position + at);
      if (packet) packets.push(packet);
      at += stride;
    }
    if (packets.length > 0) yield packets;
    if (at === 0) {
      at = 1;
      while (at < view.length && !(view[at] === SYNC && hasSyncs(view, at, stride, LOST_SYNCS))) at++;
      // The last two of them may hold the start of what follows.
      at = Math.min(at, Math.max(1, view.length - stride * LOST_SYNCS + 1));
    }
    position += at;
  }
}

/** Packets that share one view. */
const MAX_BATCH = 1024;

function parsePacket(bytes: Uint8Array, position: number): TsPacket | undefined {
  const hasPayload = (bytes[3] & 0x10) !== 0;
  const start = bytes[3] & 0x20 ? 5 + bytes[4] : 4;
  if (!hasPayload || start >= PACKET_BYTES || bytes[1] & 0x80) return undefined;
  return {
    position,
    pid: u16be(bytes, 1) & 0x1fff,
    isStart: (bytes[1] & 0x40) !== 0,
    isScrambled: bytes[3] >> 6 !== 0,
    counter: bytes[3] & 15,
    payload: bytes.subarray(start),
  };
}
