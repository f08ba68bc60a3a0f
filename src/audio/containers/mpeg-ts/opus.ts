import { fromAscii, u16be } from '../../bytes.ts';
import { OPUS_RATE_HZ } from '../../packets/opus.ts';

/** Opus in transport streams (wiki.xiph.org/OpusTS): each packet behind a control header with its length, and samples to leave out. */
export interface OpusUnit {
  readonly headerBytes: number;
  /** With the header; more than there is where the header itself is not all there. */
  readonly bytes: number;
  /** Samples at 48 kHz. */
  readonly startTrim: number;
  readonly endTrim: number;
}

/** Longest packet: 48 frames of 1275 bytes and their lengths. */
const MAX_PACKET_BYTES = 62_000;

/** The unit at `at`, or undefined where none begins. */
export function opusUnit(bytes: Uint8Array, at: number): OpusUnit | undefined {
  if (bytes[at] !== 0x7f || (bytes[at + 1] & 0xe0) !== 0xe0) return undefined;
  const flags = bytes[at + 1];
  let next = at + 2;
  let length = 0;
  for (let byte = 255; byte === 255 && next < bytes.length; length += byte) byte = bytes[next++];
  const field = (flag: number) => {
    if (!(flags & flag)) return 0;
    next += 2;
    return next <= bytes.length ? u16be(bytes, next - 2) & 0x1fff : 0;
  };
  const startTrim = field(0x10);
  const endTrim = field(0x08);
  if (flags & 0x04) next += 1 + (bytes[next] ?? 0);
  if (length === 0 || length > MAX_PACKET_BYTES) return undefined;
  const headerBytes = next - at;
  return { headerBytes, bytes: headerBytes + length, startTrim, endTrim };
}

/** Streams and those of two channels, by the number of channels, and which of their channels each is (RFC 7845 §5.1.1.2). */
const MAPPINGS: readonly (readonly [streams: number, coupled: number, mapping: readonly number[]])[] = [
  [1, 0, [0]],
  [1, 1, [0, 1]],
  [2, 1, [0, 2, 1]],
  [2, 2, [0, 1, 2, 3]],
  [3, 2, [0, 4, 1, 2, 3]],
  [4, 2, [0, 4, 1, 2, 3, 5]],
  [4, 3, [0, 4, 1, 2, 3, 5, 6]],
  [5, 3, [0, 6, 1, 2, 3, 4, 5, 7]],
];
export const MAX_OPUS_CHANNELS = MAPPINGS.length;

/** The identification header that a transport stream does without, for 1 to 8 channels. */
export function opusHeadOf(channels: number): Uint8Array {
  const [streams, coupled, mapping] = MAPPINGS[channels - 1];
  const family = channels > 2 ? 1 : 0;
  const head = new Uint8Array(19 + (family === 1 ? 2 + channels : 0));
  head.set(fromAscii('OpusHead'));
  head.set([1, channels], 8);
  new DataView(head.buffer).setUint32(12, OPUS_RATE_HZ, true);
  head[18] = family;
  if (family === 1) head.set([streams, coupled, ...mapping], 19);
  return head;
}
