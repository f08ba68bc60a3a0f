import { concat } from './audio.ts';

/** One EBML element with a size field of eight bytes; without a body, the size is unknown. */
export function element(id: number, body?: Uint8Array): Uint8Array {
  const hex = id.toString(16);
  const idBytes = Uint8Array.from({ length: hex.length / 2 }, (_, i) =>
    Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16),
  );
  const size = new Uint8Array(8).fill(0xff);
  if (body) new DataView(size.buffer).setBigUint64(0, BigInt(body.length));
  size[0] = 1;
  return concat(idBytes, size, body ?? new Uint8Array(0));
}

export const uint = (id: number, value: number): Uint8Array => {
  const body = new Uint8Array(4);
  new DataView(body.buffer).setUint32(0, value);
  return element(id, body);
};

export const text = (id: number, value: string): Uint8Array => element(id, new TextEncoder().encode(value));

const float = (id: number, value: number): Uint8Array => {
  const body = new Uint8Array(8);
  new DataView(body.buffer).setFloat64(0, value);
  return element(id, body);
};

/** One block of track 1 with 8-bit samples. */
export function block(relativeMs: number, data: Uint8Array, track = 1, flags = 0x80): Uint8Array {
  return element(0xa3, concat(Uint8Array.of(0x80 | track, (relativeMs >> 8) & 255, relativeMs & 255, flags), data));
}

export interface TrackOptions {
  readonly codecId?: string;
  readonly type?: number;
  readonly extra?: Uint8Array;
  /** Type of a second track. */
  readonly secondType?: number;
}

/** EBML header and a segment of unknown size with one track of 8-bit samples at 1 kHz. */
export function matroskaHeader({
  codecId = 'A_PCM/INT/LIT',
  type = 2,
  extra = new Uint8Array(0),
  secondType,
}: TrackOptions = {}) {
  const audio = element(0xe1, concat(float(0xb5, 1000), uint(0x9f, 1), uint(0x6264, 8)));
  const entry = concat(uint(0xd7, 1), uint(0x83, type), text(0x86, codecId), audio, extra);
  const second = secondType === undefined ? [] : [element(0xae, concat(uint(0xd7, 2), uint(0x83, secondType)))];
  return concat(
    element(0x1a45dfa3, text(0x4282, 'matroska')),
    element(0x18538067),
    element(0x1549a966, uint(0x2ad7b1, 1_000_000)),
    element(0x1654ae6b, concat(element(0xae, entry), ...second)),
  );
}

export const cluster = (startMs: number, ...blocks: readonly Uint8Array[]): Uint8Array =>
  element(0x1f43b675, concat(uint(0xe7, startMs), ...blocks));
