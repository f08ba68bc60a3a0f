/**
 * MPEG-1 layer III frames of digital silence, 128 kbit/s, 44.1 kHz, mono: they decode, but the audio does not matter.
 */
export const MP3_FRAME_BYTES = 417;

/** One frame. @param padded one byte longer, by its header */
export function mp3Frame(padded = false): Uint8Array {
  const bytes = new Uint8Array(MP3_FRAME_BYTES + (padded ? 1 : 0));
  bytes.set([0xff, 0xfb, padded ? 0x92 : 0x90, 0xc0]);
  return bytes;
}

export interface InfoFrameOptions {
  readonly name?: 'Xing' | 'Info';
  /** Values of the tag; undefined ones are left out. */
  readonly frames?: number;
  readonly encoder?: string;
  readonly delaySamples?: number;
  readonly paddingSamples?: number;
}

/** A first frame with an Info tag. */
export function infoFrame(options: InfoFrameOptions = {}): Uint8Array {
  const bytes = mp3Frame();
  const { name = 'Info', frames, encoder, delaySamples = 0, paddingSamples = 0 } = options;
  const side = 4 + 17;
  bytes.set(Buffer.from(name), side);
  let at = side + 8;
  if (frames !== undefined) {
    bytes[side + 7] = 1;
    bytes.set([(frames >>> 24) & 255, (frames >>> 16) & 255, (frames >>> 8) & 255, frames & 255], at);
    at += 4;
  }
  if (encoder !== undefined) {
    bytes.set(Buffer.from(encoder.padEnd(9).slice(0, 9)), at);
    const packed = (delaySamples << 12) | paddingSamples;
    bytes.set([(packed >> 16) & 255, (packed >> 8) & 255, packed & 255], at + 21);
  }
  return bytes;
}

export const mp3Frames = (count: number): Uint8Array =>
  new Uint8Array(Buffer.concat(Array.from({ length: count }, (_, i) => mp3Frame(i % 3 === 1))));

/** An ID3v2.4 tag with `bodyBytes` of content. */
export function id3v2(bodyBytes: number, fill = 0): Uint8Array {
  const bytes = new Uint8Array(10 + bodyBytes).fill(fill);
  const size = [(bodyBytes >> 21) & 127, (bodyBytes >> 14) & 127, (bodyBytes >> 7) & 127, bodyBytes & 127];
  bytes.set([0x49, 0x44, 0x33, 4, 0, 0, ...size]);
  return bytes;
}

export function id3v1(): Uint8Array {
  const bytes = new Uint8Array(128).fill(0x20);
  bytes.set(Buffer.from('TAG'));
  return bytes;
}

/** An APEv2 tag with header and footer around `bodyBytes` of items. */
export function apeTag(bodyBytes: number): Uint8Array {
  const frame = (flags: number) => {
    const bytes = Buffer.alloc(32);
    bytes.write('APETAGEX');
    bytes.writeUInt32LE(2000, 8);
    bytes.writeUInt32LE(bodyBytes + 32, 12);
    bytes.writeUInt32LE(flags, 20);
    return bytes;
  };
  return new Uint8Array(Buffer.concat([frame(0xa0000000), Buffer.alloc(bodyBytes, 0x41), frame(0x80000000)]));
}
