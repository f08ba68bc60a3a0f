import { type AudioResult, type CodecName, type DecoderPort, fail, type PacketDecoder } from './audio-ports.ts';
import type { BlockReader } from './block-reader.ts';
import type { PcmLayout } from './pcm.ts';

/** Packets above this size are damage; the decoders take no more either. */
export const MAX_PACKET_BYTES = 4 << 20;

/** Codec private data above this size is damage: that of Vorbis, the longest, has some 10 kB. */
export const MAX_PRIVATE_BYTES = 32 << 10;

/** One encoded packet of the chosen track, as its container stores it. */
export interface RawPacket {
  /** Byte offset in the file if the packet is contiguous; otherwise `bytes` has it. */
  readonly offset: number;
  /** Bytes, including the prefix. */
  readonly length: number;
  readonly bytes?: Uint8Array;
  /** First bytes of the packet that are not in the file. */
  readonly prefix?: Uint8Array;
  /** Number of decoded samples, if the container states it. */
  readonly samples?: number;
  /** Samples that are missing before the packet. */
  readonly gapSamples?: number;
  /** The container's time of the first sample, if stated. */
  readonly seconds?: number;
  /** Duration in the container, which may be rounded (MP4). */
  readonly constantDuration?: ConstantDuration;
  /** Number of the track, if the packets of all tracks are walked. */
  readonly trackNumber?: number;
  /** Argument with which the container's walk restarts at this packet; undefined if it cannot. */
  readonly entry?: number;
  /** Faults of the walk before an `entry`, if the walk needs them to continue. */
  readonly faultsBefore?: Faults;
}

/** A long run of packets of the same duration, in a clock that may be too coarse for it. */
export interface ConstantDuration {
  readonly ticks: number;
  /** Ticks a second. */
  readonly timescale: number;
  readonly packets: number;
}

/** Packets that were found together, in order. */
export interface PacketRun {
  readonly packets: readonly RawPacket[];
  /** Damaged bytes that were skipped before them. */
  readonly skippedBytes?: number;
  /** Sample number at the end of the last packet, if the container states ends instead of starts (OGG). */
  readonly endSample?: number;
  /** Time at the end of the last packet, if the container states it besides the times of the packets (MP4). */
  readonly endSeconds?: number;
  /** Padding at the end of the last packet, if the container states it (Matroska). */
  readonly paddingSeconds?: number;
}

export type PacketWalk = AsyncGenerator<PacketRun>;

/** Coding of the packets of one track. */
export interface TrackCodec {
  readonly codec: CodecName;
  /** As stated in the container; the decoded samples may have another rate (HE-AAC). */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Codec private data; may be empty. */
  readonly extraData: Uint8Array;
  readonly pcm?: PcmLayout;
}

/** The first `atMost` bytes of a packet. The view is valid until the next use of the reader. */
export async function packetBytes(reader: BlockReader, packet: RawPacket, atMost: number): Promise<Uint8Array> {
  const length = Math.min(packet.length, atMost);
  const { prefix } = packet;
  if (prefix) {
    const bytes = new Uint8Array(length);
    bytes.set(prefix.subarray(0, length));
    const rest = length - prefix.length;
    if (rest > 0) bytes.set((await reader.peek(packet.offset, rest)).subarray(0, rest), prefix.length);
    return bytes;
  }
  const view = packet.bytes ?? reader.cached(packet.offset, length) ?? (await reader.peek(packet.offset, length));
  return view.length > length ? view.subarray(0, length) : view;
}

/** One file format. To add a format, write a file that exports one and add it to `CONTAINERS`. */
export interface Container {
  readonly format: string;
  /** Whether the format begins with a distinct magic; formats without one are tried last. */
  readonly hasMagic: boolean;
  /** Recognises the format from the first bytes after any ID3v2 tags: at least 64 KiB unless the file is shorter. */
  detect(head: Uint8Array): boolean;
  /**
   * Reads the head of the file: the coding of the audio and the position of its packets. The container begins at
   * `startByte`, after any ID3v2 tags. If only the decoder knows the rate (HE-AAC), a few packets are decoded.
   */
  open(reader: BlockReader, startByte: number, decoders: DecoderPort): Promise<AudioResult<Part>>;
}

/** A range of decoded samples that is played, or silence. Plain JSON. */
export interface PlayedSpan {
  /** Start in the decoded samples, after all earlier spans; absent for silence. */
  readonly position?: number;
  /** Absent in the last span if it continues to the end of the track. */
  readonly samples?: number;
  /** The span is extended to the end of the track if no more than this number of samples remain. */
  readonly slackSamples?: number;
}

/**
 * Facts from a walk that cause a warning or determine how it continues: sums and flags by name. Plain JSON, because a
 * checkpoint stores it. With an `entry`, `passedBytes` is the sum of the lengths of the packets before it.
 */
export type Faults = Record<string, string | number | boolean | undefined>;

/** Facts from the first packets. */
export interface PartStart {
  /**
   * Samples of the first run minus its end position in the container (OGG): encoder delay, below 0 for a track that
   * begins late.
   */
  readonly startPadding: number;
  /** The container's time of the first packet. */
  readonly firstSeconds: number | undefined;
  /** Number of samples that the first packet decodes to. */
  readonly packetSamples: number;
  /** Duration of the first packet in the container, which may be rounded (MP4). */
  readonly constantDuration: ConstantDuration | undefined;
  /** Whether the first run is the only one. */
  readonly isOneRun: boolean;
}

/** End of the walk of a part. */
export interface PartEnd {
  /** Total of decoded samples. */
  readonly position: number;
  readonly packets: number;
}

/** One recording: its coding and its packets. A file may have several in sequence (OGG). */
export interface Part {
  readonly format: string;
  /** 'The MP4 file', for messages. */
  readonly displayName: string;
  readonly codec: CodecName;
  /** Rate of the decoded samples. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Argument for `reopen`; absent for a file's only part. */
  readonly startByte?: number;
  openDecoder(): PacketDecoder;
  /**
   * Counts the samples of each packet; absent if the packets state them.
   *
   * @param isStart whether the first packet of the track comes first
   */
  counter?(isStart: boolean): PacketCounter;
  /** The packets in order, from the first one or from the one with this `entry`. Sets `faults`. */
  walk(faults: Faults, entry?: number): PacketWalk;
  /** The ranges of the decoded samples that are played; all of them if absent. */
  playedSpans?(start: PartStart, faults: Faults): readonly PlayedSpan[];
  /** Number of decoded samples at the end that are padding; none if absent. `endPadding` is the surplus. */
  paddingOf?(end: PartEnd & { readonly endPadding: number }, faults: Faults): number;
  /** Warnings for the job's owner. */
  warnings?(faults: Faults, end: PartEnd): readonly string[] | Promise<readonly string[]>;
  /** The next recording, after all packets of this one were walked; or a warning that it is left out. */
  next?(faults: Faults): Promise<{ readonly part?: Part; readonly warning?: string }>;
  /** Opens a later part of the file by its `startByte`. */
  reopen?(startByte: number): Promise<Part | undefined>;
}

/** Counts the samples of each packet without decoding it. Must be called for every packet, in order. */
export interface PacketCounter {
  /** Number of bytes of the packet that `count` needs. */
  readonly headBytes: number;
  /** Whether a decoder may be restarted with the next packet. */
  readonly canRestart: boolean;
  count(head: Uint8Array, length: number): number;
}

export const MIN_RATE_HZ = 1000;
export const MAX_RATE_HZ = 384_000;
export const MAX_CHANNELS = 64;

export const isUsableRate = (rateHz: number): boolean =>
  Number.isInteger(rateHz) && rateHz >= MIN_RATE_HZ && rateHz <= MAX_RATE_HZ;

/** Longest block that a decoder returns, samples (the longest FLAC block). */
export const MAX_BLOCK_SAMPLES = 65536;

/** Reading ends here: twice the longest recording that any consumer accepts. */
export const MAX_SCAN_SECONDS = 48 * 3600;

/** The failure for an unsupported rate or number of channels; undefined if both are supported. */
export function shapeFault(name: string, sampleRateHz: number, channels: number): ReturnType<typeof fail> | undefined {
  if (!Number.isInteger(channels) || channels < 1 || channels > MAX_CHANNELS) {
    return fail('unsupported', `The ${name} file has ${channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (isUsableRate(sampleRateHz)) return undefined;
  const range = `${MIN_RATE_HZ} to ${MAX_RATE_HZ} Hz`;
  return fail('unsupported', `The ${name} file has a sample rate of ${sampleRateHz} Hz; ${range} are supported.`);
}

/**
 * Warning of a second file after the one that is read, which is left out.
 *
 * @param displayName 'The WAV file'
 */
export const trailingFileWarning = (displayName: string): string =>
  `${displayName} contains a second recording after the first; it was left out.`;

/** Steps in a row without a packet; real files have some tens. */
const MAX_STEPS = 200_000;
/** Steps that a packet refunds: clusters and groups of one packet have that number of elements around it. */
const STEPS_PER_PACKET = 4;

/**
 * Limits how long a walk continues without a packet. The shortest elements and pages are a few bytes long, so that a
 * file of only such elements would take minutes. Packets and passed bytes refund steps: other tracks of any length cost
 * nothing.
 *
 * The budget never exceeds `MAX_STEPS`, so that a walk from the middle never ends before a walk from the start.
 */
export class StepBudget {
  #left = MAX_STEPS;

  /** @param bytesPerStep bytes that refund a step: fewer than a real step has */
  constructor(
    private readonly bytesPerStep: number,
    private position: number,
  ) {}

  /** Accounts for steps up to `position` and their packets. @returns false when the budget is used up */
  spend(position: number, steps: number, packets: number): boolean {
    const refund = (position - this.position) / this.bytesPerStep + STEPS_PER_PACKET * packets;
    this.position = position;
    this.#left = Math.min(MAX_STEPS, this.#left + refund - steps);
    return this.#left > 0;
  }
}

/**
 * Warning of a walk that `StepBudget` ended.
 *
 * @param displayName 'The OGG file'
 */
export const endlessWalkWarning = (displayName: string): string =>
  `${displayName} has a very long span without audio; what follows was left out.`;
