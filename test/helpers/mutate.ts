import { concat } from './audio.ts';

const EXTREME_BYTES = [0, 1, 0x7f, 0x80, 0xfe, 0xff];

/** Overwrites, cuts, repeats and inserts bytes, mostly near the start with the headers. */
export function mutate(bytes: Uint8Array, next: () => number): Uint8Array {
  let out: Uint8Array = bytes.slice();
  const position = () => Math.floor(next() ** (next() < 0.5 ? 4 : 1) * out.length);
  for (let count = 1 + Math.floor(next() * 6); count > 0; count--) {
    const kind = next();
    const at = position();
    if (kind < 0.45) out[at] = Math.floor(next() * 256);
    else if (kind < 0.7)
      out.fill(EXTREME_BYTES[Math.floor(next() * EXTREME_BYTES.length)], at, at + 1 + Math.floor(next() * 5));
    else if (kind < 0.8) out = out.slice(0, at + 1);
    else if (kind < 0.9) out = concat(out.subarray(0, at), out.subarray(position()));
    else
      out = concat(
        out.subarray(0, at),
        Uint8Array.from({ length: 9 }, () => Math.floor(next() * 256)),
        out.subarray(at),
      );
  }
  return out;
}
