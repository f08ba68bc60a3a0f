/** Bytes of big-endian fields, for writers of files in tests. */
export const be16 = (value: number): number[] => [(value >>> 8) & 255, value & 255];
export const be32 = (value: number): number[] => [...be16(value >>> 16), ...be16(value)];
export const be64 = (value: number): number[] => [...be32(Math.floor(value / 2 ** 32)), ...be32(value >>> 0)];
export const ascii = (value: string): number[] => [...value].map((letter) => letter.charCodeAt(0));

export function bef64(value: number): number[] {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return [...bytes];
}

/** A whole number up to 2^31 as an 80-bit IEEE extended float. */
export function extended80(value: number): number[] {
  if (value === 0) return Array(10).fill(0);
  const exponent = Math.floor(Math.log2(value));
  const mantissa = Math.round(value * 2 ** (31 - exponent));
  return [...be16(16383 + exponent), ...be32(mantissa >>> 0), 0, 0, 0, 0];
}
