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

/** CRC-16 of all of `bytes`, going on from `crc`: polynomial x¹⁶+x¹⁵+x²+1, initial value 0. A frame with its footer gives 0. */
export function crc16(bytes: Uint8Array, crc = 0): number {
  for (let i = 0; i < bytes.length; i++) crc = ((crc << 8) & 0xffff) ^ CRC16[(crc >> 8) ^ bytes[i]];
  return crc;
}
