/** The two checksums of a FLAC frame (RFC 9639 §9.1.8 and §9.3), most significant bit first. */

function table(width: 8 | 16, polynomial: number): Uint16Array {
  const top = 1 << (width - 1);
  const mask = (1 << width) - 1;
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << (width - 8);
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & top ? polynomial : 0)) & mask;
    return crc;
  });
}

const CRC8 = table(8, 0x07);
const CRC16 = table(16, 0x8005);

/** CRC-8 of `[from, to)`: polynomial x⁸+x²+x+1, initial value 0. */
export function crc8(bytes: Uint8Array, from: number, to: number): number {
  let crc = 0;
  for (let i = from; i < to; i++) crc = CRC8[crc ^ bytes[i]];
  return crc;
}

/**
 * CRC-16 of `bytes`, continuing from `crc`: polynomial x¹⁶+x¹⁵+x²+1, initial value 0. A frame with its footer gives 0.
 */
export function crc16(bytes: Uint8Array, crc = 0): number {
  for (let i = 0; i < bytes.length; i++) crc = ((crc << 8) & 0xffff) ^ CRC16[(crc >> 8) ^ bytes[i]];
  return crc;
}

const POLYNOMIAL = 0x04c11db7;

/** Bytes of one step: an hour has some 30 MB, and every page is summed each time it is read. */
const STRIDE = 8;

/** `TABLES[256 * k + byte]`: checksum of the byte followed by `k` zero bytes. */
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

/**
 * CRC-32 with the polynomial 0x04c11db7, most significant bit first, continuing from `crc`: OGG pages (RFC 3533 §6,
 * initial value 0) and MPEG-TS sections. A signed number of 32 bits.
 */
export function crc32MsbFirst(bytes: Uint8Array, crc = 0): number {
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

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32 of ISO-HDLC, as in zip and PNG (polynomial 0x04c11db7 reflected). */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
