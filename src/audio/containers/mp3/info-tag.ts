import { ascii, hasAscii, u24be, u32be } from '../../bytes.ts';
import { type MpegHeader, sideInfoBytes } from './header.ts';

/** What the silent first frame of most MP3 files says about the rest. */
export interface InfoTag {
  /** Frames after the tag frame, where the tag says so. */
  readonly frames?: number;
  /** Samples that the encoder put in front and after; both 0 where the tag does not say. */
  readonly delaySamples: number;
  readonly paddingSamples: number;
  readonly hasDelay: boolean;
}

/** Encoders that write the three bytes of delay and padding ('LAME tag'). */
const DELAY_WRITERS = ['LAME', 'Lavf', 'Lavc'];

/** Reads the Xing/Info or VBRI tag of the first frame; undefined when the frame holds sound. */
export function readInfoTag(frame: Uint8Array, header: MpegHeader): InfoTag | undefined {
  const side = 4 + sideInfoBytes(header);
  // With a checksum in the header some writers put the tag two bytes later.
  for (const at of [side, side + 2]) {
    if (hasAscii(frame, at, 'Xing') || hasAscii(frame, at, 'Info')) return readXing(frame, at);
  }
  if (hasAscii(frame, 36, 'VBRI') && frame.length >= 36 + 18) {
    return { frames: u32be(frame, 36 + 14), delaySamples: 0, paddingSamples: 0, hasDelay: false };
  }
  return undefined;
}

function readXing(frame: Uint8Array, at: number): InfoTag {
  const none: InfoTag = { delaySamples: 0, paddingSamples: 0, hasDelay: false };
  if (at + 8 > frame.length) return none;
  const flags = u32be(frame, at + 4);
  let position = at + 8;
  let frames: number | undefined;
  if (flags & 1 && position + 4 <= frame.length) frames = u32be(frame, position);
  position += (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0);
  const counted = frames === undefined || frames === 0 ? none : { ...none, frames };
  if (position + 24 > frame.length || !DELAY_WRITERS.includes(ascii(frame, position, position + 4))) return counted;
  const packed = u24be(frame, position + 21);
  return { ...counted, delaySamples: packed >> 12, paddingSamples: packed & 0xfff, hasDelay: true };
}

/** Samples that every decoder itself puts in front (ISO/IEC 11172-3 synthesis filterbank and overlap). */
export const DECODER_DELAY_SAMPLES = 529;

/**
 * Decoded samples at the end that are the encoder's padding, as players have it: without the tag nothing is cut.
 *
 * @param decodedSamples frames really there × samples per frame
 */
export function paddingOf(tag: InfoTag | undefined, decodedSamples: number, frameSamples: number): number {
  if (!tag?.hasDelay) return 0;
  const tagged = (tag.frames ?? 0) * frameSamples;
  // More frames than the tag says: concatenated files, whose end is not where this tag thinks.
  if (tagged < decodedSamples) return 0;
  return Math.max(0, decodedSamples - (tagged - tag.paddingSamples + DECODER_DELAY_SAMPLES));
}
