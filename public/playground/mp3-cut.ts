/** Rates of MPEG 1, 2 and 2.5, in Hz. */
const RATES_HZ: Readonly<Record<number, readonly number[]>> = {
  3: [44_100, 48_000, 32_000],
  2: [22_050, 24_000, 16_000],
  0: [11_025, 12_000, 8000],
};
/** Bit rates of layer III in kbit/s, by the index in the header. */
const KBITS_MPEG_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBITS_MPEG_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

interface Frame {
  readonly bytes: number;
  readonly seconds: number;
}

/** The complete frames in a chunk of an MP3 file. */
export interface Mp3Cut {
  /** Offset of the first frame. */
  readonly from: number;
  /** End of the last complete frame. */
  readonly to: number;
  readonly seconds: number;
}

/** Finds the complete frames in a chunk of an MP3 file, so that the file can be decoded in chunks of known length. */
export function cutFrames(bytes: Uint8Array): Mp3Cut {
  let from = 0;
  while (from < bytes.length && !isFrameStart(bytes, from)) from++;
  let [to, seconds] = [from, 0];
  for (let frame = frameAt(bytes, to); frame && to + frame.bytes <= bytes.length; frame = frameAt(bytes, to)) {
    to += frame.bytes;
    seconds += frame.seconds;
  }
  return { from, to, seconds };
}

/** Whether a frame starts here. Bytes may equal a sync word by chance, so a second one must follow the frame. */
function isFrameStart(bytes: Uint8Array, at: number): boolean {
  const frame = frameAt(bytes, at);
  return frame !== undefined && (at + frame.bytes + 4 > bytes.length || frameAt(bytes, at + frame.bytes) !== undefined);
}

function frameAt(bytes: Uint8Array, at: number): Frame | undefined {
  if (at + 4 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1] & 0xe6) !== 0xe2) return undefined;
  const version = (bytes[at + 1] >> 3) & 3;
  const rateHz = RATES_HZ[version]?.[(bytes[at + 2] >> 2) & 3];
  const isMpeg1 = version === 3;
  const kbits = (isMpeg1 ? KBITS_MPEG_1 : KBITS_MPEG_2)[bytes[at + 2] >> 4];
  if (!rateHz || !kbits) return undefined;
  const padding = (bytes[at + 2] >> 1) & 1;
  return {
    bytes: Math.floor(((isMpeg1 ? 144 : 72) * kbits * 1000) / rateHz) + padding,
    seconds: (isMpeg1 ? 1152 : 576) / rateHz,
  };
}
