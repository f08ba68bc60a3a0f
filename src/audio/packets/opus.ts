import { fromAscii, u16le } from '../bytes.ts';

/** Opus counts at 48 kHz, whatever went in. */
export const OPUS_RATE_HZ = 48000;

/** Longest packet: 120 ms. */
const MAX_PACKET_SAMPLES = 5760;

const SILK_SAMPLES = [480, 960, 1920, 2880];
const CELT_SAMPLES = [120, 240, 480, 960];

/** Samples of one packet at 48 kHz by its first two bytes (RFC 6716 §3.1); 0 for one that cannot be. */
export function opusPacketSamples(head: Uint8Array): number {
  if (head.length === 0) return 0;
  const config = head[0] >> 3;
  const frame =
    config < 12 ? SILK_SAMPLES[config & 3] : config < 16 ? (config & 1 ? 960 : 480) : CELT_SAMPLES[config & 3];
  const code = head[0] & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : head.length > 1 ? head[1] & 63 : 0;
  return frame * frames <= MAX_PACKET_SAMPLES ? frame * frames : 0;
}

export interface OpusHead {
  readonly channels: number;
  /** Samples at 48 kHz in front of the recording. */
  readonly preSkip: number;
}

/** The identification header (RFC 7845 §5.1); undefined when it is none. */
export function parseOpusHead(bytes: Uint8Array): OpusHead | undefined {
  if (bytes.length < 19 || bytes[8] >> 4 !== 0 || bytes[9] === 0) return undefined;
  return { channels: bytes[9], preSkip: u16le(bytes, 10) };
}

/** An OpusHead from the `dOps` box of MP4, which holds the same in the other byte order. */
export function opusHeadFromBox(box: Uint8Array): Uint8Array {
  const head = new Uint8Array(8 + Math.max(11, box.length));
  head.set(fromAscii('OpusHead'));
  head.set(box, 8);
  head[8] = 1;
  head.set([box[3], box[2], box[7], box[6], box[5], box[4], box[9], box[8]], 10);
  return head;
}
