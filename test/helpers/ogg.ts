import { CRC_OFFSET, pageChecksum } from '../../src/audio/containers/ogg/crc.ts';

const HEADER_BYTES = 27;

/** The file with the right checksum in every whole page: after changes, the damage is inside the pages, not of them. */
export function withChecksums(file: Uint8Array): Uint8Array {
  const out = file.slice();
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
