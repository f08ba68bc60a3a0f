import { BitReader } from '../bit-reader.ts';

import { type AudioResult, fail, ok } from '../result.ts';
import type { TrackCodec } from './packet.ts';

/** What the AudioSpecificConfig of an AAC track says (ISO/IEC 14496-3 §1.6.2.1). */
interface AacConfig {
  readonly objectType: number;
  readonly sampleRateHz: number;
  /** 0 where a program config element says. */
  readonly channels: number;
}

const RATES_HZ = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8];

/** USAC, the core of xHE-AAC. */
export const AAC_OBJECT_USAC = 42;
/** Its name in messages. */
export const XHE_AAC = 'xHE-AAC (USAC)';

/** The configuration, or undefined where its bytes are no such thing. */
function parseAacConfig(bytes: Uint8Array): AacConfig | undefined {
  if (bytes.length < 2) return undefined;
  const reader = new BitReader(bytes);
  let objectType = reader.bits(5);
  if (objectType === 31) objectType = 32 + reader.bits(6);
  const rateIndex = reader.bits(4);
  const sampleRateHz = rateIndex === 15 ? reader.bits(24) : RATES_HZ[rateIndex];
  const channels = CHANNELS[reader.bits(4)];
  if (objectType === 0 || sampleRateHz === undefined || channels === undefined) return undefined;
  return { objectType, sampleRateHz, channels };
}

/** A configuration for AAC-LC where a file has none; undefined for a rate or channels that have no code. */
export function aacConfig(sampleRateHz: number, channels: number): Uint8Array | undefined {
  const [rateCode, channelCode] = [RATES_HZ.indexOf(sampleRateHz), CHANNELS.indexOf(channels)];
  if (rateCode < 0 || channelCode < 1) return undefined;
  return Uint8Array.of((2 << 3) | (rateCode >> 1), ((rateCode & 1) << 7) | (channelCode << 3));
}

/**
 * An AAC track by its AudioSpecificConfig.
 *
 * @param where 'The MP4 file', for messages
 * @param channels where the configuration leaves them to the coded data
 */
export function aacTrack(privateData: Uint8Array, channels: number, where: string): AudioResult<TrackCodec> {
  const config = parseAacConfig(privateData);
  if (!config) return fail('corrupt', `${where} has a damaged header of its AAC track.`);
  if (config.objectType === AAC_OBJECT_USAC) {
    return fail('unsupported', `${where} holds audio in ${XHE_AAC}, which is not supported.`);
  }
  return ok({
    codec: 'aac',
    sampleRateHz: config.sampleRateHz,
    channels: config.channels || channels || 1,
    extraData: privateData.slice(),
  });
}
