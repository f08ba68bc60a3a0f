import { hasAscii, u32be } from '../../bytes.ts';
import { MONO_BLOCK_SAMPLES } from '../../container.ts';

/** What the cookie of an ALAC stream says, and the private data that the decoder takes. */
export interface AlacConfig {
  readonly frameSamples: number;
  readonly channels: number;
  readonly bitsPerSample: number;
  readonly extraData: Uint8Array;
}

const ALAC_CONFIG_BYTES = 24;

/** Reads an ALAC cookie: the bare configuration, or wrapped in the atoms that QuickTime put around it. */
export function parseAlacCookie(cookie: Uint8Array): AlacConfig | undefined {
  const at = hasAscii(cookie, 4, 'frma') ? 24 : hasAscii(cookie, 4, 'alac') ? 12 : 0;
  const config = cookie.subarray(at, at + ALAC_CONFIG_BYTES);
  if (config.length < ALAC_CONFIG_BYTES) return undefined;
  const frameSamples = u32be(config, 0);
  const bitsPerSample = config[5];
  const channels = config[9];
  if (frameSamples < 64 || frameSamples > MONO_BLOCK_SAMPLES || channels < 1 || channels > 8) return undefined;
  if (![16, 20, 24, 32].includes(bitsPerSample)) return undefined;
  const extraData = new Uint8Array(12 + ALAC_CONFIG_BYTES);
  extraData.set([0, 0, 0, extraData.length, 0x61, 0x6c, 0x61, 0x63]);
  extraData.set(config, 12);
  return { frameSamples, channels, bitsPerSample, extraData };
}

/** Tags of MPEG-4 descriptors (ISO/IEC 14496-1 §7.2.6) and the fixed fields in front of what is nested in them. */
const ES = 3;
const DECODER_CONFIG = 4;
const DECODER_SPECIFIC = 5;
const DECODER_CONFIG_BYTES = 13;

/** The AudioSpecificConfig inside an AAC cookie, which is an elementary stream descriptor; undefined where there is none. */
export function parseAacCookie(cookie: Uint8Array): Uint8Array | undefined {
  let at = 0;
  // Each turn goes on behind the header, or steps into the descriptor that holds the next.
  while (at + 2 <= cookie.length) {
    const tag = cookie[at++];
    let length = 0;
    for (let count = 0; count < 4 && at < cookie.length; count++) {
      const byte = cookie[at++];
      length = length * 128 + (byte & 0x7f);
      if (!(byte & 0x80)) break;
    }
    if (tag === DECODER_SPECIFIC) {
      const config = cookie.slice(at, at + length);
      return config.length >= 2 && config.length === length ? config : undefined;
    }
    if (tag === ES) at += esFieldsBytes(cookie, at);
    else if (tag === DECODER_CONFIG) at += DECODER_CONFIG_BYTES;
    else at += length;
  }
  return undefined;
}

/** Fields in front of the decoder configuration: three, and up to three more by their flags. */
function esFieldsBytes(cookie: Uint8Array, at: number): number {
  const flags = cookie[at + 2] ?? 0;
  const url = flags & 0x40 ? 1 + (cookie[at + 3] ?? 0) : 0;
  return 3 + (flags & 0x80 ? 2 : 0) + url + (flags & 0x20 ? 2 : 0);
}
