import { u16be } from '../../bytes.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import type { CodecName } from '../../types.ts';
import { adtsFrameBytesAt, adtsLockAt, parseAdtsHeader } from '../adts/header.ts';
import { parseHeader } from '../mp3/header.ts';
import { loasFrameBytes } from './latm.ts';
import { opusUnit } from './opus.ts';
import type { Framing } from './tables.ts';

/** What the header of one frame of sound says. */
export interface SoundFrame {
  readonly bytes: number;
  /** What it is coded with, where the frame itself says so. */
  readonly track?: TrackCodec;
}

const NOTHING = new Uint8Array(0);

const frame = (codec: CodecName, bytes: number, sampleRateHz: number, channels: number): SoundFrame => ({
  bytes,
  track: { codec, sampleRateHz, channels, extraData: NOTHING },
});

/** Longest header that `soundFrame` looks at. */
export const MAX_HEADER_BYTES = 7;

/** The frame at `at`, or undefined where none begins. */
export function soundFrame(framing: Framing, bytes: Uint8Array, at: number): SoundFrame | undefined {
  if (at + MAX_HEADER_BYTES > bytes.length) return undefined;
  switch (framing) {
    case 'adts':
      return adtsFrame(bytes, at);
    case 'mpeg':
      return mpegFrame(bytes, at);
    case 'ac3':
    case 'eac3':
      return dolbyFrame(bytes, at);
    case 'latm': {
      const length = loasFrameBytes(bytes, at);
      return length > 0 ? { bytes: length } : undefined;
    }
    case 'opus':
      return opusUnit(bytes, at);
  }
}

/** AAC with a header of its own. */
function adtsFrame(bytes: Uint8Array, at: number): SoundFrame | undefined {
  const length = adtsFrameBytesAt(bytes, at, adtsLockAt(bytes, at));
  if (length === 0) return undefined;
  const { coreRateHz, channels } = parseAdtsHeader(bytes, at);
  return frame('aac', length, coreRateHz, channels || 2);
}

function mpegFrame(bytes: Uint8Array, at: number): SoundFrame | undefined {
  const header = parseHeader(bytes, at);
  if (!header || header.layer === 1 || header.frameBytes === 0) return undefined;
  return frame(header.layer === 3 ? 'mp3' : 'mp2', header.frameBytes, header.sampleRateHz, header.channels);
}

const AC3_RATES_HZ = [48000, 44100, 32000];
const AC3_KBPS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/** Up to this number the syntax is AC-3's, above it E-AC-3's. */
const MAX_AC3_ID = 10;

/** AC-3 and E-AC-3 (ATSC A/52 §5.3, annex E §2.2). Channels are the decoder's matter. */
function dolbyFrame(bytes: Uint8Array, at: number): SoundFrame | undefined {
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return undefined;
  const rateCode = bytes[at + 4] >> 6;
  if (bytes[at + 5] >> 3 > MAX_AC3_ID) {
    const length = 2 * ((u16be(bytes, at + 2) & 0x7ff) + 1);
    const sampleRateHz = AC3_RATES_HZ[rateCode] ?? (AC3_RATES_HZ[(bytes[at + 4] >> 4) & 3] ?? 0) / 2;
    return sampleRateHz > 0 && length > MAX_HEADER_BYTES ? frame('eac3', length, sampleRateHz, 2) : undefined;
  }
  const sizeCode = bytes[at + 4] & 63;
  const kbps = AC3_KBPS[sizeCode >> 1];
  const sampleRateHz = AC3_RATES_HZ[rateCode];
  if (kbps === undefined || sampleRateHz === undefined) return undefined;
  const words = Math.floor((kbps * 96_000) / sampleRateHz) + (rateCode === 1 ? sizeCode & 1 : 0);
  return frame('ac3', 2 * words, sampleRateHz, 2);
}
