import type { BlockReader } from '../block-reader.ts';
import type { Faults } from '../container.ts';
import type { PcmLayout } from '../pcm.ts';
import type { CodecName } from '../types.ts';

/** Packets above this size are damage; the decoders take no more either. */
export const MAX_PACKET_BYTES = 4 << 20;

/** Codec private data above this size is damage: that of Vorbis, the longest, has some 10 kB. */
export const MAX_PRIVATE_BYTES = 32 << 10;

/** One encoded packet of the chosen track, as its container holds it. */
export interface RawPacket {
  /** Where it lies in the file, if in one piece; else `bytes` holds it. */
  readonly offset: number;
  /** With the prefix. */
  readonly length: number;
  readonly bytes?: Uint8Array;
  /** What it begins with that is not in the file. */
  readonly prefix?: Uint8Array;
  /** What it decodes to, where the container knows. */
  readonly samples?: number;
  /** Samples that are missing in front of it. */
  readonly gapSamples?: number;
  /** The container's time of its first sample, where it has one. */
  readonly seconds?: number;
  /** How long it lasts by the container, where that was rounded (MP4). */
  readonly evenly?: EvenTimes;
  /** Number of its track, where the packets of all tracks are walked. */
  readonly trackNumber?: number;
  /** What the container's walker takes to starts again with this packet; undefined where it cannot. */
  readonly entry?: number;
  /** What the walk had met in front of an `entry`, where that says how it continues. */
  readonly met?: Faults;
}

/** Very many packets in a row that all last the same, by a clock that may be too coarse to say how long. */
export interface EvenTimes {
  readonly ticks: number;
  /** Ticks a second. */
  readonly timescale: number;
  readonly packets: number;
}

/** Packets that were found together, in order. */
export interface PacketRun {
  readonly packets: readonly RawPacket[];
  /** Damaged bytes in front of them that were left out. */
  readonly skippedBytes?: number;
  /** Sample number at the end of the last packet, where the container says that instead of a start (OGG). */
  readonly endSample?: number;
  /** Time at the end of the last packet, where the container has that beside the times of the packets (MP4). */
  readonly endSeconds?: number;
  /** Padding at the end of the last packet, where the container has it (Matroska). */
  readonly paddingSeconds?: number;
}

export type PacketWalk = AsyncGenerator<PacketRun>;

/** What the packets of one track are coded with. */
export interface TrackCodec {
  readonly codec: CodecName;
  /** As the container has it; what comes out of the decoder may have another rate (HE-AAC). */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Codec private data; empty where there is none. */
  readonly extraData: Uint8Array;
  readonly pcm?: PcmLayout;
}

/** The first `atMost` bytes of a packet. The view is valid until the next use of the reader. */
export async function packetBytes(reader: BlockReader, packet: RawPacket, atMost: number): Promise<Uint8Array> {
  const length = Math.min(packet.length, atMost);
  const { prefix } = packet;
  if (prefix) {
    const whole = new Uint8Array(length);
    whole.set(prefix.subarray(0, length));
    const rest = length - prefix.length;
    if (rest > 0) whole.set((await reader.peek(packet.offset, rest)).subarray(0, rest), prefix.length);
    return whole;
  }
  const view = packet.bytes ?? reader.held(packet.offset, length) ?? (await reader.peek(packet.offset, length));
  return view.length > length ? view.subarray(0, length) : view;
}
