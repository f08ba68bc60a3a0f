import type { BlockReader } from '../../block-reader.ts';
import { ascii, f64be, hasAscii, i64be, u32be } from '../../bytes.ts';
import { type EffectsChannels, effectsOfLayout, MAX_LAYOUT_BYTES } from '../../channel-layout.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { SeekNeeded } from '../../types.ts';

/** The description chunk (Apple Core Audio Format 1.0, 'desc'). */
export interface CafDescription {
  readonly sampleRateHz: number;
  readonly formatId: string;
  readonly formatFlags: number;
  /** 0 where packets differ in length: the packet table has their lengths. */
  readonly bytesPerPacket: number;
  readonly framesPerPacket: number;
  readonly channels: number;
  readonly bitsPerChannel: number;
}

/** The packet table chunk ('pakt'). */
export interface CafPacketTable {
  readonly packets: number;
  readonly validFrames: number;
  readonly primingFrames: number;
  /** Where the lengths stand, and where they end. */
  readonly offset: number;
  readonly endByte: number;
}

export interface CafHeader {
  readonly description: CafDescription;
  /** Codec private data ('kuki'); empty where there is none. */
  readonly cookie: Uint8Array;
  readonly packetTable?: CafPacketTable;
  readonly effects: EffectsChannels;
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly warning?: string;
}

/** Chunks walked; real files have fewer than ten. */
const MAX_CHUNKS = 1000;
/** Cookies of ALAC and AAC have 24 to 100 bytes. */
const MAX_COOKIE_BYTES = 4096;
const DESCRIPTION_BYTES = 32;
const TABLE_HEADER_BYTES = 24;

const DAMAGED = fail('corrupt', 'The header of the Core Audio file is damaged.');

/** Walks the chunks of a Core Audio file. */
export async function readCafHeader(reader: BlockReader, startByte: number): Promise<AudioResult<CafHeader>> {
  let description: CafDescription | undefined;
  let cookie: Uint8Array = new Uint8Array(0);
  let layout: Uint8Array = new Uint8Array(0);
  let packetTable: CafPacketTable | undefined;
  let data: { readonly dataOffset: number; readonly dataBytes: number; readonly warning?: string } | undefined;
  let offset = startByte + 8;
  for (let count = 0; count < MAX_CHUNKS; count++) {
    const head = await reader.peek(offset, 12);
    if (head.length < 12) break;
    const type = ascii(head, 0, 4);
    const size = i64be(head, 4);
    const body = offset + 12;
    if (data && type === 'caff') break;
    // Only sound that is being written may be of unknown length; it is the last chunk. What follows the sound and is no
    // chunk is not missed.
    if (size < 0 && (data || type !== 'data')) {
      if (data) break;
      return DAMAGED;
    }
    if (type === 'desc') {
      const bytes = await reader.peek(body, DESCRIPTION_BYTES);
      if (bytes.length < DESCRIPTION_BYTES) return DAMAGED;
      description = parseDescription(bytes);
    } else if (type === 'kuki') {
      const length = Math.min(size, MAX_COOKIE_BYTES);
      cookie = (await reader.peek(body, length)).slice(0, length);
    } else if (type === 'chan') {
      const length = Math.min(size, MAX_LAYOUT_BYTES);
      layout = (await reader.peek(body, length)).slice(0, length);
    } else if (type === 'pakt') {
      const bytes = await reader.peek(body, TABLE_HEADER_BYTES);
      if (bytes.length < TABLE_HEADER_BYTES || size < TABLE_HEADER_BYTES) return DAMAGED;
      packetTable = parsePacketTable(bytes, body, Math.min(reader.sizeBytes, body + size));
    } else if (type === 'data' && !data) {
      // A table after the packets would be found by reading all of them for nothing.
      const needsTable = !packetTable && description?.bytesPerPacket === 0;
      if (size > 0 && needsTable && reader.isOneWay(offset, body + size))
        throw new SeekNeeded('the table is behind the packets');
      // After a count of edits.
      data = { dataOffset: body + 4, ...extent(reader.sizeBytes - body - 4, size < 0 ? undefined : size - 4) };
    }
    // What stands after the sound is needed only where packets differ in length.
    if (size < 0 || (data && description && description.bytesPerPacket > 0)) break;
    offset = body + size;
  }
  if (!description) return DAMAGED;
  if (!data || data.dataBytes <= 0) return fail('no_samples', 'The Core Audio file has no samples in it.');
  return ok({ description, cookie, packetTable, effects: effectsOfLayout(layout, description.channels), ...data });
}

function parseDescription(bytes: Uint8Array): CafDescription {
  return {
    sampleRateHz: Math.round(f64be(bytes, 0)),
    formatId: ascii(bytes, 8, 12),
    formatFlags: u32be(bytes, 12),
    bytesPerPacket: u32be(bytes, 16),
    framesPerPacket: u32be(bytes, 20),
    channels: u32be(bytes, 24),
    bitsPerChannel: u32be(bytes, 28),
  };
}

const parsePacketTable = (bytes: Uint8Array, body: number, endByte: number): CafPacketTable => ({
  packets: i64be(bytes, 0),
  validFrames: i64be(bytes, 8),
  primingFrames: u32be(bytes, 16) | 0,
  offset: body + TABLE_HEADER_BYTES,
  endByte,
});

function extent(available: number, declared: number | undefined): { dataBytes: number; warning?: string } {
  if (declared !== undefined && declared <= available) return { dataBytes: declared };
  const warning =
    declared === undefined
      ? 'The header of the Core Audio file does not say how long the recording is; everything up to the end of the file was used.'
      : TRUNCATED_WARNING;
  return { dataBytes: Math.max(0, available), warning };
}

export const TRUNCATED_WARNING = 'The Core Audio file ends before its header says; the part that is there was used.';

/** Whether the first bytes are those of a Core Audio file. */
export const isCaf = (head: Uint8Array): boolean => hasAscii(head, 0, 'caff');
