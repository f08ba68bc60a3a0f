/** Small readers of binary fields. Every caller has checked the length before. */

export const u16le = (bytes: Uint8Array, at: number): number => bytes[at] | (bytes[at + 1] << 8);

export const u32le = (bytes: Uint8Array, at: number): number =>
  (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;

/** Unsigned 64-bit, as a number; sizes above 2^53 lose their last bits, but are larger than any file anyway. */
export const u64le = (bytes: Uint8Array, at: number): number => u32le(bytes, at) + u32le(bytes, at + 4) * 2 ** 32;

export const u16be = (bytes: Uint8Array, at: number): number => (bytes[at] << 8) | bytes[at + 1];

export const u24be = (bytes: Uint8Array, at: number): number =>
  (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2];

export const u32be = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;

/** Whether the ASCII `text` is at `at`; false if the bytes end before it does. */
export function hasAscii(bytes: Uint8Array, at: number, text: string): boolean {
  if (at < 0 || at + text.length > bytes.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The bytes `[from, to)` as text, one character each. */
export function ascii(bytes: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let i = from; i < Math.min(to, bytes.length); i++) text += String.fromCharCode(bytes[i]);
  return text;
}

/** The bytes of a text in ASCII. */
export const fromAscii = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

/** Two lower-case digits a byte. */
export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

export const f64be = (bytes: Uint8Array, at: number): number =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getFloat64(at, false);

/** Signed 64-bit big-endian, as a number; exact up to 2^53. */
export const i64be = (bytes: Uint8Array, at: number): number => (u32be(bytes, at) | 0) * 2 ** 32 + u32be(bytes, at + 4);

/** Every JavaScript runtime has these, but not the types of the language's library. */
declare function btoa(binary: string): string;
declare function atob(text: string): string;

/** Base64 with padding and without line breaks (RFC 4648, section 4). */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** @returns undefined for text that is not base64. Line breaks are allowed: a voiceprint may have been sent by mail. */
export function fromBase64(text: string): Uint8Array | undefined {
  // White space is removed first: a pattern with two adjacent parts that match it takes quadratic time.
  const packed = text.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(packed)) return undefined;
  try {
    return Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** Fields of any width, first bit first. After the end of the bytes it reads zeros, and `isPast` is true. */
export class BitReader {
  /** Number of the next bit. */
  at: number;

  constructor(
    private readonly bytes: Uint8Array,
    fromByte = 0,
  ) {
    this.at = fromByte * 8;
  }

  /** At most 32 bits. */
  bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.at++) {
      value = value * 2 + (((this.bytes[this.at >> 3] ?? 0) >> (7 - (this.at & 7))) & 1);
    }
    return value;
  }

  get isPast(): boolean {
    return this.at > this.bytes.length * 8;
  }
}
