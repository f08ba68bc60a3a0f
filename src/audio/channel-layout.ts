import { u32be } from './bytes.ts';

/**
 * Which channels of uncompressed sound are low-frequency effects, by their numbers from 0. They are left out of the mono mix, as ITU-R BS.775
 * has it; decoders know their own. Layouts that are not stated are never guessed. Mono and stereo have no such channel.
 */
export type EffectsChannels = readonly number[];

const NONE: EffectsChannels = [];

/** Bit of the low-frequency channel in the masks of WAV, which Core Audio shares. */
const EFFECTS_BIT = 8;

/** By the channel mask of WAVE_FORMAT_EXTENSIBLE: the channels that are there come in the order of its bits. */
export function effectsOfMask(mask: number, channels: number): EffectsChannels {
  if (channels <= 2 || !(mask & EFFECTS_BIT)) return NONE;
  const inFront = [1, 2, 4].filter((bit) => mask & bit).length;
  return inFront < channels ? [inFront] : NONE;
}

/** Tags of Core Audio (CoreAudioBaseTypes.h): number of the layout without its count of channels, and where in it the low frequencies are. */
const LAYOUTS: ReadonlyMap<number, number> = new Map([
  ...[133, 134, 135].map((tag) => [tag, 2] as const), // L R LFE …
  ...[121, 125, 126, 128, 130, 136, 137, 152, 153, 168].map((tag) => [tag, 3] as const), // L R C LFE …, or three others in front
  ...[138, 154, 169].map((tag) => [tag, 4] as const), // four in front: DVD 18, AC-3 3/1, DTS 4.1
  ...[122, 123, 124, 129].map((tag) => [tag, 5] as const), // five in front: MPEG 5.1 B, C, D, Emagic 7.1
  ...[157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167].map((tag) => [tag, 5] as const), // E-AC-3 6.1 and 7.1
  [142, 6], // AAC 6.1
  [127, 7], // MPEG 7.1 B
]);
const BY_DESCRIPTIONS = 0;
const BY_BITMAP = 0x10000;
const HEAD_BYTES = 12;
const DESCRIPTION_BYTES = 20;
const EFFECTS_LABELS = [4, 37];

/**
 * By an AudioChannelLayout of Core Audio, as CAF, AIFF and QuickTime hold it.
 *
 * @param bytes tag, bitmap and the number of descriptions, then the descriptions; may be cut short
 */
export function effectsOfLayout(bytes: Uint8Array, channels: number): EffectsChannels {
  if (channels <= 2 || bytes.length < HEAD_BYTES) return NONE;
  const tag = u32be(bytes, 0);
  if (tag === BY_BITMAP) return effectsOfMask(u32be(bytes, 4), channels);
  if (tag !== BY_DESCRIPTIONS) {
    const at = (tag & 0xffff) === channels ? LAYOUTS.get(tag >>> 16) : undefined;
    return at === undefined ? NONE : [at];
  }
  const described = Math.min(u32be(bytes, 8), channels, Math.floor((bytes.length - HEAD_BYTES) / DESCRIPTION_BYTES));
  const found: number[] = [];
  for (let i = 0; i < described; i++) {
    if (EFFECTS_LABELS.includes(u32be(bytes, HEAD_BYTES + i * DESCRIPTION_BYTES))) found.push(i);
  }
  return found.length < channels ? found : NONE;
}

const HAS_CHANNELS = 1;
/** Positions of loudspeakers (ISO/IEC 23091-3): the two of low frequencies, and one that is written out in three more bytes. */
const EFFECTS_POSITIONS = [3, 26];
const EXPLICIT_POSITION = 126;

/** By the body of the box `chnl` of MP4 (ISO/IEC 14496-12 §12.2.4), where it lists the channels. */
export function effectsOfPositions(body: Uint8Array, channels: number): EffectsChannels {
  const isLong = body[0] === 1;
  const structure = isLong ? body[4] >> 4 : body[4];
  let at = isLong ? 6 : 5;
  // A layout by its number is not followed: writers disagree about the order of its channels.
  const isListed = structure & HAS_CHANNELS && body[at++] === 0;
  if (channels <= 2 || !isListed || (isLong && body[at++] !== channels)) return NONE;
  const found: number[] = [];
  for (let channel = 0; channel < channels && at < body.length; channel++) {
    if (EFFECTS_POSITIONS.includes(body[at])) found.push(channel);
    at += body[at] === EXPLICIT_POSITION ? 4 : 1;
  }
  return found.length < channels ? found : NONE;
}

/** Bytes of a layout with as many descriptions as there may be channels. */
export const MAX_LAYOUT_BYTES = HEAD_BYTES + 64 * DESCRIPTION_BYTES;
