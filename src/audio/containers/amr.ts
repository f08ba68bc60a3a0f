import { fail, ok } from '../audio-ports.ts';
import { hasAscii } from '../bytes.ts';
import type { Container } from '../container.ts';
import { type FrameSyntax, framePackets, frameWarnings } from '../frame-walker.ts';

/** The two codecs of the AMR family (RFC 4867 §5, files of one channel). */
type AmrCodec = 'amr-nb' | 'amr-wb';

export interface AmrFamily {
  readonly codec: AmrCodec;
  readonly name: string;
  readonly magic: string;
  readonly sampleRateHz: number;
  /** 20 ms. */
  readonly frameSamples: number;
  /** Frame length by frame type including the header, also of comfort noise and lost frames; 0 for undefined types. */
  readonly frameBytes: readonly number[];
}

const AMR_FAMILIES: readonly AmrFamily[] = [
  {
    codec: 'amr-nb',
    name: 'AMR',
    magic: '#!AMR\n',
    sampleRateHz: 8000,
    frameSamples: 160,
    frameBytes: [13, 14, 16, 18, 20, 21, 27, 32, 6, 7, 6, 6, 0, 0, 0, 1],
  },
  {
    codec: 'amr-wb',
    name: 'AMR-WB',
    magic: '#!AMR-WB\n',
    sampleRateHz: 16000,
    frameSamples: 320,
    frameBytes: [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 0, 0, 0, 0, 1, 1],
  },
];

export const familyOf = (codec: AmrCodec): AmrFamily =>
  AMR_FAMILIES[0].codec === codec ? AMR_FAMILIES[0] : AMR_FAMILIES[1];

/** Tags after the audio that begin like a frame. */
const TAGS = ['TAG', 'LYRICSBEGIN'];

/**
 * A header has a zero bit, 4 bits of type, 1 of quality, and two zero bits: only a long chain is evidence. Zeros alone
 * are no frame, although they are a valid header of damaged speech: lost sectors and padding of files are zeros.
 */
const amrSyntax = ({ frameBytes }: AmrFamily): FrameSyntax => ({
  headerBytes: 1,
  lookAheadBytes: frameBytes[0],
  maxFrameBytes: 61,
  chain: 12,
  frameBytesAt(bytes, at) {
    if (TAGS.some((tag) => hasAscii(bytes, at, tag))) return 0;
    if (bytes[at] === 0) return isZero(bytes, at, frameBytes[0]) ? 0 : frameBytes[0];
    return bytes[at] & 0x83 ? 0 : frameBytes[bytes[at] >> 3];
  },
});

function isZero(bytes: Uint8Array, from: number, length: number): boolean {
  const end = Math.min(bytes.length, from + length);
  for (let at = from; at < end; at++) if (bytes[at] !== 0) return false;
  return true;
}

/**
 * AMR and AMR-WB files of one channel. Frames without speech (comfort noise, lost, not transmitted) become silence of
 * the same length.
 */
export const amr: Container = {
  format: 'amr',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, '#!AMR'),

  async open(reader, startByte, decoders) {
    const head = await reader.peek(startByte, 16);
    const family = AMR_FAMILIES.find(({ magic }) => hasAscii(head, 0, magic));
    if (!family) return fail('unsupported', 'The file is an AMR file of several channels, which is not supported.');
    const { codec, sampleRateHz, frameSamples, name, magic } = family;
    const firstByte = startByte + magic.length;
    return ok({
      format: 'amr',
      displayName: `The ${name} file`,
      codec,
      sampleRateHz,
      channels: 1,
      openDecoder: () => decoders.open({ codec, sampleRateHz, channels: 1 }),
      walk: (faults, entry = firstByte) =>
        framePackets(reader, amrSyntax(family), { startByte: entry, endByte: reader.sizeBytes }, frameSamples, faults),
      warnings: (faults) => frameWarnings(name, faults),
    });
  },
};
