import { u32be } from '../bytes.ts';
import { MAX_BLOCK_SAMPLES } from '../container.ts';
import type { TrackCodec } from './packet.ts';

const ALAC_CONFIG_BYTES = 24;
const MIN_FRAME_SAMPLES = 64;
const ATOM_HEAD = [0, 0, 0, 12 + ALAC_CONFIG_BYTES, 0x61, 0x6c, 0x61, 0x63, 0, 0, 0, 0];

/**
 * An ALAC track by its configuration (ALACSpecificConfig, after which other bytes may stand); undefined for bytes that
 * are none.
 */
export function alacTrack(bytes: Uint8Array): TrackCodec | undefined {
  const config = bytes.subarray(0, ALAC_CONFIG_BYTES);
  if (config.length < ALAC_CONFIG_BYTES) return undefined;
  const [frameSamples, bitsPerSample, channels] = [u32be(config, 0), config[5], config[9]];
  if (frameSamples < MIN_FRAME_SAMPLES || frameSamples > MAX_BLOCK_SAMPLES) return undefined;
  if (channels < 1 || channels > 8 || ![16, 20, 24, 32].includes(bitsPerSample)) return undefined;
  // The decoder wants it in the atom that QuickTime puts around it.
  const extraData = Uint8Array.from([...ATOM_HEAD, ...config]);
  return { codec: 'alac', sampleRateHz: u32be(config, 20), channels, extraData };
}
