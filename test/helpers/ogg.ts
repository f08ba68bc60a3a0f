import { CRC_OFFSET, pageChecksum } from '../../src/audio/containers/ogg-pages.ts';

const HEADER_BYTES = 27;
const MAX_SEGMENTS = 255;

export interface StreamOptions {
  readonly serial: number;
  readonly sequence?: number;
  readonly granule?: number;
  readonly isFirst?: boolean;
}

/** Packets of one stream in as few pages as possible, all with one position. */
export function oggPages(
  packets: readonly Uint8Array[],
  { serial, sequence = 0, granule = 0, isFirst = false }: StreamOptions,
): Uint8Array {
  const segments = packets.flatMap(({ length }) => [...Array(Math.floor(length / 255)).fill(255), length % 255]);
  const body = Buffer.concat(packets);
  const pages: Uint8Array[] = [];
  let bodyAt = 0;
  for (let at = 0; at < segments.length; at += MAX_SEGMENTS) {
    const own = segments.slice(at, at + MAX_SEGMENTS);
    const header = Buffer.alloc(HEADER_BYTES);
    header.write('OggS');
    header[5] = (segments[at - 1] === 255 ? 1 : 0) | (isFirst ? 2 : 0);
    header.writeBigInt64LE(own.every((length) => length === 255) ? -1n : BigInt(granule), 6);
    header.writeUInt32LE(serial, 14);
    header.writeUInt32LE(sequence + at / MAX_SEGMENTS, 18);
    header[26] = own.length;
    const bytes = own.reduce((sum, length) => sum + length, 0);
    pages.push(header, Uint8Array.from(own), body.subarray(bodyAt, bodyAt + bytes));
    bodyAt += bytes;
  }
  return withChecksums(Buffer.concat(pages));
}

/** Corrects the checksum of every complete page, so that changes damage the packets but not the pages. */
export function withChecksums(file: Uint8Array): Uint8Array {
  const out = Uint8Array.from(file);
  const buffer = Buffer.from(out.buffer);
  for (let at = buffer.indexOf('OggS'); at >= 0; ) {
    const segments = out.subarray(at + HEADER_BYTES, at + HEADER_BYTES + (out[at + 26] ?? 0));
    const end = segments.reduce((sum, length) => sum + length, at + HEADER_BYTES + segments.length);
    const isPage = at + HEADER_BYTES <= out.length && end <= out.length;
    if (isPage) buffer.writeUInt32LE(pageChecksum(out.subarray(at, end)), at + CRC_OFFSET);
    at = buffer.indexOf('OggS', isPage ? end : at + 1);
  }
  return out;
}
