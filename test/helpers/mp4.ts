/** Boxes of MP4 files, and files with other edit lists. */
import { concat } from './audio.ts';
import { find } from './bytes.ts';

/** Big-endian words. */
export function u32(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  for (const [i, value] of values.entries()) new DataView(bytes.buffer).setUint32(4 * i, value);
  return bytes;
}

export function box(type: string, ...parts: Uint8Array[]): Uint8Array {
  const body = concat(...parts);
  return concat(u32(8 + body.length), new TextEncoder().encode(type), body);
}

/** Duration in ms, time in the media (`EMPTY`: silence), and the rate if it is not 1. */
export type EditEntry = readonly [ms: number, mediaTime: number, rate?: number];
export const EMPTY = 0xffffffff;
const NORMAL_RATE = 0x10000;

/** Body of `elst`. */
export const editList = (...entries: readonly EditEntry[]): Uint8Array =>
  concat(u32(0, entries.length), ...entries.map(([ms, time, rate = NORMAL_RATE]) => u32(ms, time, rate)));

/**
 * Replaces the edit list of a file with one track. The file must be in fragments or have its index after the data, so
 * that no offset changes.
 */
export function withEdits(file: Uint8Array, ...entries: readonly EditEntry[]): Uint8Array {
  const hasList = Buffer.from(file).includes('edts');
  const at = find(file, hasList ? 'edts' : 'mdia') - 4;
  const oldBytes = hasList ? new DataView(file.buffer, file.byteOffset).getUint32(at) : 0;
  const edts = box('edts', box('elst', editList(...entries)));
  const out = concat(file.subarray(0, at), edts, file.subarray(at + oldBytes));
  for (const type of ['moov', 'trak']) {
    const view = new DataView(out.buffer, out.byteOffset);
    const place = find(out, type) - 4;
    view.setUint32(place, view.getUint32(place) + edts.length - oldBytes);
  }
  return out;
}

const u16 = (...values: number[]): Uint8Array => Uint8Array.from(values.flatMap((value) => [value >> 8, value & 255]));

export interface SoundEntryFields {
  /** Four letters. */
  readonly type: string;
  readonly channels: number;
  readonly bits: number;
  /** 0: the field is missing. */
  readonly rateHz: number;
  readonly timescale: number;
  readonly boxes?: Uint8Array;
}

/** Audio track `id`. @param tables boxes of `stbl` after the descriptions */
export function soundTrack(
  id: number,
  entry: SoundEntryFields,
  tables: readonly Uint8Array[],
  more: readonly SoundEntryFields[] = [],
): Uint8Array {
  const descriptions = [entry, ...more].map(soundEntry);
  const stbl = box('stbl', box('stsd', u32(0, descriptions.length), ...descriptions), ...tables);
  return track(id, 'soun', entry.timescale, stbl);
}

function soundEntry(entry: SoundEntryFields): Uint8Array {
  const { type, channels, bits, rateHz, boxes = new Uint8Array(0) } = entry;
  return box(type, u32(0), u16(0, 1), u32(0, 0), u16(channels, bits, 0, 0, rateHz, 0), boxes);
}

/** A track that is not audio, with its packets in fragments. */
export const otherTrack = (id: number, handler: string, timescale: number): Uint8Array =>
  track(id, handler, timescale, box('stbl', box('stsd', u32(0, 0)), ...NO_SAMPLES));

function track(id: number, handler: string, timescale: number, stbl: Uint8Array): Uint8Array {
  const tkhd = box('tkhd', u32(7, 0, 0, id, 0, 0));
  const hdlr = box('hdlr', u32(0, 0), new TextEncoder().encode(handler), u32(0, 0, 0));
  const mdia = box('mdia', box('mdhd', u32(0, 0, 0, timescale, 0, 0)), hdlr, box('minf', stbl));
  return box('trak', tkhd, mdia);
}

/** Tables of a track whose packets are in fragments. */
export const NO_SAMPLES: readonly Uint8Array[] = ['stts', 'stsc', 'stsz', 'stco'].map((type) =>
  box(type, u32(0, 0, 0)),
);

export const movieHeader = (timescale: number): Uint8Array => box('mvhd', u32(0, 0, 0, timescale, 0, 0, 0, 0));

interface SoundMovie extends SoundEntryFields {
  readonly entries: number;
  readonly entryBytes: number;
  readonly ticksPerEntry: number;
  readonly data: Uint8Array;
}

/** A file with one audio track in one chunk, with entries of one size. */
export function soundMovie(movie: SoundMovie): Uint8Array {
  const { entries, entryBytes, ticksPerEntry, data } = movie;
  const fileWith = (offset: number) => {
    const stts = box('stts', u32(0, 1, entries, ticksPerEntry));
    const stsc = box('stsc', u32(0, 1, 1, entries, 1));
    const stsz = box('stsz', u32(0, entryBytes, entries));
    const tables = [stts, stsc, stsz, box('stco', u32(0, 1, offset))];
    const moov = box('moov', movieHeader(1000), soundTrack(1, movie, tables));
    return concat(box('ftyp', u32(0x71742020, 0)), moov, box('mdat', data));
  };
  return fileWith(fileWith(0).length - data.length);
}

interface PacketMovie extends SoundEntryFields {
  readonly packets: readonly Uint8Array[];
  readonly ticksPerPacket: number;
  readonly isIndexLast?: boolean;
}

/** Packets of one chunk. */
const PER_CHUNK = 10;

/** A file with one track of packets of any size, ten per chunk. */
export function packetMovie(movie: PacketMovie): Uint8Array {
  const { packets, ticksPerPacket, isIndexLast = false } = movie;
  const chunks: number[] = [];
  let offset = 0;
  for (const [i, { length }] of packets.entries()) {
    if (i % PER_CHUNK === 0) chunks.push(offset);
    offset += length;
  }
  const rest = packets.length % PER_CHUNK;
  const whole = Math.floor(packets.length / PER_CHUNK);
  const head = box('ftyp', u32(0x69736f6d, 0));
  const mdat = box('mdat', ...packets);
  const index = (first: number) => {
    const runs = rest > 0 ? u32(0, 2, 1, PER_CHUNK, 1, whole + 1, rest, 1) : u32(0, 1, 1, PER_CHUNK, 1);
    const tables = [
      box('stts', u32(0, 1, packets.length, ticksPerPacket)),
      box('stsc', runs),
      box('stsz', u32(0, 0, packets.length, ...packets.map(({ length }) => length))),
      box('stco', u32(0, chunks.length, ...chunks.map((chunk) => first + chunk))),
    ];
    return box('moov', movieHeader(1000), soundTrack(1, movie, tables));
  };
  if (isIndexLast) return concat(head, mdat, index(head.length + 8));
  return concat(head, index(head.length + index(0).length + 8), mdat);
}

/** The same in fragments of a hundred packets. @param ticksOf start time of a packet by its number */
export function fragmentMovie(
  movie: PacketMovie,
  ticksOf = (packet: number) => packet * movie.ticksPerPacket,
): Uint8Array {
  const { packets, ticksPerPacket } = movie;
  const trex = box('mvex', box('trex', u32(0, 1, 1, ticksPerPacket, 0, 0)));
  const parts = [
    box('ftyp', u32(0x69736f6d, 0)),
    box('moov', movieHeader(1000), soundTrack(1, movie, NO_SAMPLES), trex),
  ];
  for (let first = 0; first < packets.length; first += 100) {
    const own = packets.slice(first, first + 100);
    const sizes = own.map(({ length }) => length);
    const moof = (offset: number) => {
      const run = box('trun', u32(0x201, own.length, offset, ...sizes));
      const traf = box('traf', box('tfhd', u32(0x020000, 1)), box('tfdt', u32(0, ticksOf(first))), run);
      return box('moof', box('mfhd', u32(0, 1 + first)), traf);
    };
    parts.push(moof(moof(0).length + 8), box('mdat', ...own));
  }
  return concat(...parts);
}
