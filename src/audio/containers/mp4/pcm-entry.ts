import { u16be } from '../../bytes.ts';
import { effectsOfLayout, effectsOfPositions } from '../../channel-layout.ts';
import type { PcmLayout } from '../../pcm.ts';
import { findBox } from './boxes.ts';

/** The fields that all sound descriptions share, and where the boxes after them begin. */
export interface SoundEntry {
  readonly type: string;
  readonly version: number;
  readonly channels: number;
  readonly bits: number;
  readonly sampleRateHz: number;
  /** Flags of uncompressed sound, in the second version of QuickTime's description. */
  readonly formatFlags: number;
  readonly boxes: Uint8Array;
}

/** Flags of `lpcm` (QuickTime File Format, sound sample description version 2). */
const IS_FLOAT = 1;
const IS_BIG_ENDIAN = 2;
const IS_SIGNED = 4;
const IS_NOT_INTERLEAVED = 32;

/** How uncompressed samples lie, and which of their channels are left out of the mix; undefined for other codings. */
export function pcmEntry(sound: SoundEntry): PcmLayout | undefined {
  const layout = samplesOf(sound);
  if (!layout) return undefined;
  const [chan, chnl] = [findBox(sound.boxes, 'chan'), findBox(sound.boxes, 'chnl')];
  const effects = chan
    ? effectsOfLayout(chan.subarray(4), layout.channels)
    : effectsOfPositions(chnl ?? NO_LAYOUT, layout.channels);
  return effects.length > 0 ? { ...layout, effects } : layout;
}

const NO_LAYOUT = new Uint8Array(0);

/** `sowt` and `twos` are names for 16 bits; what else is written under them is said beside. */
const bytesOfNamed = (bits: number): number => ([8, 24, 32].includes(bits) ? bits / 8 : 2);

/**
 * How uncompressed samples lie, for the many names they have; undefined for other codings, and for widths that nobody
 * writes.
 */
function samplesOf({ type, bits, channels, formatFlags, boxes }: SoundEntry): PcmLayout | undefined {
  const big = (encoding: PcmLayout['encoding'], bytesPerSample: number, isBigEndian = true): PcmLayout | undefined =>
    [1, 2, 3, 4, 8].includes(bytesPerSample) ? { encoding, bytesPerSample, isBigEndian, channels } : undefined;
  const isLittle = () => {
    const enda = findBox(findBox(boxes, 'wave') ?? boxes, 'enda');
    return enda !== undefined && enda.length >= 2 && u16be(enda, 0) === 1;
  };
  switch (type) {
    case 'sowt':
      return big('signed', bytesOfNamed(bits), false);
    case 'twos':
      return big('signed', bytesOfNamed(bits));
    case 'raw ':
    case 'NONE':
      return bits === 16 ? big('signed', 2) : big('unsigned', 1);
    case 'in24':
      return big('signed', 3, !isLittle());
    case 'in32':
      return big('signed', 4, !isLittle());
    case 'fl32':
      return big('float', 4, !isLittle());
    case 'fl64':
      return big('float', 8, !isLittle());
    case 'alaw':
      return big('alaw', 1);
    case 'ulaw':
      return big('mulaw', 1);
    case 'lpcm': {
      if (formatFlags & IS_NOT_INTERLEAVED || bits % 8 !== 0) return undefined;
      const encoding = formatFlags & IS_FLOAT ? 'float' : formatFlags & IS_SIGNED ? 'signed' : 'unsigned';
      if (encoding === 'unsigned' && bits !== 8) return undefined;
      return big(encoding, bits / 8, (formatFlags & IS_BIG_ENDIAN) !== 0);
    }
    case 'ipcm':
    case 'fpcm': {
      const config = findBox(boxes, 'pcmC');
      if (!config || config.length < 6 || config[5] % 8 !== 0) return undefined;
      return big(type === 'ipcm' ? 'signed' : 'float', config[5] / 8, (config[4] & 1) === 0);
    }
    default:
      return undefined;
  }
}
