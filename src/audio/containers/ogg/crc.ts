/** The checksum of OGG pages (RFC 3533 §6): CRC-32 with the polynomial 0x04c11db7, most significant bit first, initial value 0. */

const POLYNOMIAL = 0x04c11db7;

/** Eight bytes at a time: an hour has some 30 MB, and every page is summed wherever it is read. */
const STRIDE = 8;

/** `TABLES[256 * k + byte]`: what the byte comes to with `k` more bytes behind it. */
const TABLES = new Int32Array(256 * STRIDE);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc < 0 ? POLYNOMIAL : 0);
  TABLES[byte] = crc;
}
for (let at = 256; at < TABLES.length; at++) {
  const before = TABLES[at - 256];
  TABLES[at] = (before << 8) ^ TABLES[before >>> 24];
}

/** CRC of `bytes`, going on from `crc`; a signed number of 32 bits. */
export function crc32(bytes: Uint8Array, crc = 0): number {
  let at = 0;
  for (; at + STRIDE <= bytes.length; at += STRIDE) {
    const word = crc ^ ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]);
    crc =
      TABLES[0x700 + (word >>> 24)] ^
      TABLES[0x600 + ((word >>> 16) & 255)] ^
      TABLES[0x500 + ((word >>> 8) & 255)] ^
      TABLES[0x400 + (word & 255)] ^
      TABLES[0x300 + bytes[at + 4]] ^
      TABLES[0x200 + bytes[at + 5]] ^
      TABLES[0x100 + bytes[at + 6]] ^
      TABLES[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) crc = (crc << 8) ^ TABLES[(crc >>> 24) ^ bytes[at]];
  return crc;
}

/** Where the checksum stands in a page; it counts as 0 in its own sum. */
export const CRC_OFFSET = 22;
const FIELD = new Uint8Array(4);

/** The checksum that a page should have, unsigned. @param page all of it */
export const pageChecksum = (page: Uint8Array): number =>
  crc32(page.subarray(CRC_OFFSET + 4), crc32(FIELD, crc32(page.subarray(0, CRC_OFFSET)))) >>> 0;
