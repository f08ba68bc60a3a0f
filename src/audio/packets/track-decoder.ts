import type { BlockReader } from '../block-reader.ts';
import { fromHex } from '../bytes.ts';
import { isUsableRate } from '../container.ts';
import { type AudioResult, fail, ok } from '../result.ts';
import type { DecoderPort, PacketDecoder } from '../types.ts';
import { MAX_PACKET_BYTES, type PacketWalk, packetBytes, type TrackCodec } from './packet.ts';
import { pcmDecoder } from './pcm-decoder.ts';

/** @throws when the decoder refuses the private data; `tryDecoder` finds that out */
export function openTrack(track: TrackCodec, decoders: DecoderPort): PacketDecoder {
  if (track.pcm) return pcmDecoder(track.pcm, track.sampleRateHz);
  if (track.codec === 'pcm') throw new RangeError('samples without a layout');
  return decoders.open({
    codec: track.codec,
    sampleRateHz: track.sampleRateHz,
    channels: track.channels,
    extraData: fromHex(track.extraData),
  });
}

/** Packets at the beginning that are tried. */
const FIRST_TRIES = 64;
/** Where all of them fail, the beginning may be a hole in the file: some more are tried each time that an eighth as many packets have passed. */
const FURTHER_TRIES = 6;
const PASSED_SHIFT = 3;
/** Packets that must decode. */
const ENOUGH = 3;

export interface Trial {
  readonly sampleRateHz: number;
  readonly packetSamples: number;
}

/**
 * Decodes the first packets that can be: only the decoder knows the true rate of HE-AAC, and whether the private data is any good.
 *
 * @param where 'The MP4 file', for the message
 */
export async function tryDecoder(
  reader: BlockReader,
  track: TrackCodec,
  decoders: DecoderPort,
  walk: PacketWalk,
  where: string,
): Promise<AudioResult<Trial>> {
  const refused = fail('corrupt', `${where} holds audio (${track.codec.toUpperCase()}) that cannot be decoded.`);
  let decoder: PacketDecoder;
  try {
    decoder = openTrack(track, decoders);
  } catch {
    return refused;
  }
  let packets = 0;
  let nextTry = 0;
  let triesLeft = FIRST_TRIES;
  let decoded = 0;
  let packetSamples = 0;
  try {
    search: for await (const run of walk) {
      for (const packet of run.packets) {
        if (packets++ < nextTry) continue;
        const samples = decoder.decode(await packetBytes(reader, packet, MAX_PACKET_BYTES)).length;
        if (samples > 0) decoded++;
        packetSamples = Math.max(packetSamples, samples);
        if (decoded >= ENOUGH) break search;
        if (--triesLeft > 0) continue;
        if (decoded > 0 && nextTry === 0) break search;
        // One that decodes by chance among others is no sound.
        decoded = 0;
        nextTry = packets + (packets >> PASSED_SHIFT);
        triesLeft = FURTHER_TRIES;
      }
    }
    if (packets === 0) return fail('no_samples', `${where} has no samples in it.`);
    if (decoded === 0) return refused;
    const { sampleRateHz } = decoder;
    if (!isUsableRate(sampleRateHz)) {
      return fail('unsupported', `${where} has a sample rate of ${sampleRateHz} Hz, which is not supported.`);
    }
    return ok({ sampleRateHz, packetSamples });
  } finally {
    decoder.close();
  }
}
