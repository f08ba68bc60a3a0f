import type { BlockReader } from '../../block-reader.ts';
import { fromHex, toHex } from '../../bytes.ts';
import type { IndexBase } from '../../container.ts';
import { isUsableRate } from '../../container.ts';
import { decodeFrames } from '../../frame-stream.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { CodecSpec, DecoderPort } from '../../types.ts';
import { parseAacCookie, parseAlacCookie } from './cookie.ts';
import { type CafHeader, TRUNCATED_WARNING } from './header.ts';
import { mappedPackets, type PacketMap, scanPackets } from './packets.ts';

/** ALAC or AAC in packets whose lengths are in a table. */
export interface CafCodedIndex extends IndexBase, PacketMap {
  readonly format: 'caf';
  readonly codec: 'alac' | 'aac';
  readonly frameSamples: number;
  /** Decoded samples in front of the recording. */
  readonly skipSamples: number;
  /** Codec private data, hexadecimal. */
  readonly extraData: string;
}

/** ALAC packets stand alone; AAC needs one packet in front, and bandwidth extension the last of its own headers. */
const WARM_UP_PACKETS: Readonly<Record<CafCodedIndex['codec'], number>> = { alac: 0, aac: 24 };

/** Packets that are decoded to learn rate and length of what they give. */
const TRIAL_PACKETS = 24;

const specOf = ({
  codec,
  sampleRateHz,
  channels,
  extraData,
}: Omit<CodecSpec, 'extraData'> & { extraData: string }) => ({
  codec,
  sampleRateHz,
  channels,
  extraData: fromHex(extraData),
});

/** Whether the decoder takes the private data. */
function opens(decoders: DecoderPort, spec: CodecSpec): boolean {
  try {
    decoders.open(spec).close();
    return true;
  } catch {
    return false;
  }
}

/** Measures a file that holds ALAC or AAC. */
export async function probeCoded(
  reader: BlockReader,
  header: CafHeader,
  codec: CafCodedIndex['codec'],
  decoders: DecoderPort,
): Promise<AudioResult<CafCodedIndex>> {
  const { description, packetTable, cookie } = header;
  if (!packetTable) return fail('corrupt', 'The Core Audio file has no table of its packets.');
  const alac = codec === 'alac' ? parseAlacCookie(cookie) : undefined;
  const extraData = codec === 'alac' ? alac?.extraData : parseAacCookie(cookie);
  if (!extraData) return fail('corrupt', 'The Core Audio file lacks the description of its coding.');
  const channels = alac?.channels ?? description.channels;
  const spec = { codec, sampleRateHz: description.sampleRateHz, channels, extraData: toHex(extraData) };
  if (!opens(decoders, specOf(spec))) {
    return fail('unsupported', 'The Core Audio file is coded in a way that is not supported.');
  }
  const trial = await scanPackets(reader, { ...packetTable, packets: TRIAL_PACKETS }, header, {
    frameSamples: 1,
    sampleRateHz: description.sampleRateHz,
  });
  const sound = alac
    ? { frameSamples: alac.frameSamples, sampleRateHz: description.sampleRateHz }
    : await tryDecoding(reader, decoders, specOf(spec), trial);
  if (!sound || !isUsableRate(sound.sampleRateHz)) {
    return fail('unsupported', 'The Core Audio file is coded in a way that is not supported.');
  }
  const { frameSamples, sampleRateHz } = sound;
  const { packets, isTruncated, ...map } = await scanPackets(reader, packetTable, header, sound);
  // Valid and priming frames count at the rate of the description, which for AAC may be half of the decoder's.
  const scale = sampleRateHz / description.sampleRateHz;
  const last =
    alac && packets > 0 ? await decodedLength(reader, decoders, specOf(spec), map, packets - 1, frameSamples) : 0;
  // Some writers count the last packet as full in the table; a packet of ALAC itself says how long it is.
  const decoded = packets * frameSamples - (last > 0 ? frameSamples - last : 0);
  const skipSamples = Math.min(Math.max(0, Math.round(packetTable.primingFrames * scale)), decoded);
  const valid = Math.round(packetTable.validFrames * scale);
  const totalSamples = valid > 0 ? Math.min(valid, decoded - skipSamples) : decoded - skipSamples;
  if (totalSamples <= 0) return fail('no_samples', 'The Core Audio file has no samples in it.');
  const warning = isTruncated ? TRUNCATED_WARNING : header.warning;
  return ok({
    format: 'caf',
    ...spec,
    sampleRateHz,
    totalSamples,
    durationSeconds: totalSamples / sampleRateHz,
    ...(warning === undefined ? {} : { warning }),
    frameSamples,
    skipSamples,
    ...map,
  });
}

/** Mono samples `[startSample, totalSamples)`. */
export function readCoded(
  reader: BlockReader,
  index: CafCodedIndex,
  decoders: DecoderPort,
  startSample: number,
): AsyncGenerator<Float32Array> {
  const timing = { ...index, warmUpFrames: WARM_UP_PACKETS[index.codec] };
  const packets = mappedPackets(reader, index, index.frameSamples);
  return decodeFrames(timing, packets, () => decoders.open(specOf(index)), startSample);
}

/** Samples that the given packet decodes to by itself, at most `frameSamples`. */
async function decodedLength(
  reader: BlockReader,
  decoders: DecoderPort,
  spec: CodecSpec,
  map: PacketMap,
  packet: number,
  frameSamples: number,
): Promise<number> {
  const decoder = decoders.open(spec);
  try {
    for await (const bytes of mappedPackets(reader, map, frameSamples)(packet)) {
      return Math.min(frameSamples, decoder.decode(bytes).length);
    }
    return 0;
  } finally {
    decoder.close();
  }
}

/** Rate and length of what a packet gives: only the coded data say whether there is bandwidth extension. */
async function tryDecoding(
  reader: BlockReader,
  decoders: DecoderPort,
  spec: CodecSpec,
  map: PacketMap,
): Promise<{ sampleRateHz: number; frameSamples: number } | undefined> {
  const decoder = decoders.open(spec);
  let tries = 0;
  try {
    for await (const packet of mappedPackets(reader, map, 1)(0)) {
      const frameSamples = decoder.decode(packet).length;
      if (frameSamples > 0) return { frameSamples, sampleRateHz: decoder.sampleRateHz };
      if (++tries === TRIAL_PACKETS) return undefined;
    }
    return undefined;
  } finally {
    decoder.close();
  }
}
