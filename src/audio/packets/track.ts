import type { BlockReader } from '../block-reader.ts';
import { type Faults, isUsableRate, MAX_CHANNELS, type Part } from '../container.ts';
import { type AudioResult, fail, ok } from '../result.ts';
import type { DecoderPort, PacketDecoder } from '../types.ts';
import { packetCounter } from './count.ts';
import { MAX_PACKET_BYTES, MAX_PRIVATE_BYTES, type PacketWalk, packetBytes, type TrackCodec } from './packet.ts';
import { pcmDecoder } from './pcm-decoder.ts';

/** One track of packets, as its container finds it. */
export interface Track {
  readonly format: string;
  /** 'The MP4 file', for messages. */
  readonly where: string;
  readonly track: TrackCodec;
  walk(faults: Faults, entry?: number): PacketWalk;
  /** Gets what the walk to the first packets met. */
  readonly trial?: Faults;
}

/** Decoders of Opus with more channels take up to 15 MB each; the module has 32 MB for all that an isolate decodes. */
const MAX_OPUS_CHANNELS = 32;

/** Checks a track and decodes its first packets, which tell its true rate. */
export async function openTrack(
  reader: BlockReader,
  decoders: DecoderPort,
  { format, where, track, walk, trial: met = {} }: Track,
): Promise<AudioResult<Part>> {
  const { codec, channels } = track;
  if (channels < 1 || channels > MAX_CHANNELS) {
    return fail('unsupported', `${where} has ${channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (codec === 'opus' && channels > MAX_OPUS_CHANNELS) {
    return fail('unsupported', `${where} has ${channels} channels; of Opus, 1 to ${MAX_OPUS_CHANNELS} are supported.`);
  }
  if (!isUsableRate(track.sampleRateHz)) {
    return fail('unsupported', `${where} has a sample rate of ${track.sampleRateHz} Hz, which is not supported.`);
  }
  if (track.extraData.length > MAX_PRIVATE_BYTES) {
    return fail('corrupt', `${where} has a damaged header: what it says about its codec is too long.`);
  }
  const trial = await tryDecoder(reader, track, decoders, walk(met), where);
  if (!trial.ok) return trial;
  const { sampleRateHz, packetSamples } = trial.value;
  return ok({
    format,
    where,
    codec,
    sampleRateHz,
    channels,
    openDecoder: () => openDecoder(track, decoders),
    counter: (isStart) => packetCounter(track, packetSamples, isStart),
    walk,
  });
}

/** @throws when the decoder refuses the private data; `tryDecoder` finds that out */
function openDecoder(
  { codec, pcm, sampleRateHz, channels, extraData }: TrackCodec,
  decoders: DecoderPort,
): PacketDecoder {
  if (pcm) return pcmDecoder(pcm, sampleRateHz, decoders);
  if (codec === 'pcm') throw new RangeError('samples without a layout');
  return decoders.open({ codec, sampleRateHz, channels, extraData });
}

/** Packets at the beginning that are tried. */
const FIRST_TRIES = 64;
/**
 * Where all of them fail, the beginning may be a hole in the file: some more are tried each time that an eighth as many
 * packets have passed.
 */
const FURTHER_TRIES = 6;
const PASSED_SHIFT = 3;
/** Packets that must decode. */
const ENOUGH = 3;

interface Trial {
  readonly sampleRateHz: number;
  readonly packetSamples: number;
}

/**
 * Decodes the first packets that can be: only the decoder knows the true rate of HE-AAC, and whether the private data
 * is any good.
 *
 * @param where 'The MP4 file', for the message
 */
async function tryDecoder(
  reader: BlockReader,
  track: TrackCodec,
  decoders: DecoderPort,
  walk: PacketWalk,
  where: string,
): Promise<AudioResult<Trial>> {
  const refused = fail('corrupt', `${where} holds audio (${track.codec.toUpperCase()}) that cannot be decoded.`);
  let decoder: PacketDecoder;
  try {
    decoder = openDecoder(track, decoders);
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
