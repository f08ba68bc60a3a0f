import { type AudioResult, type CodecName, type DecoderPort, fail, type PacketDecoder } from './audio-ports.ts';
import type { BlockReader } from './block-reader.ts';
import type { PcmLayout } from './pcm.ts';

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

/** One file format. A new one is a file with one of these and a line in `CONTAINERS`. */
export interface Container {
  readonly format: string;
  /** Whether the format begins with a magic of its own; those without are asked last. */
  readonly hasMagic: boolean;
  /**
   * Recognises the format from the first bytes (after any ID3v2 tags; at least 64 KiB of them where the file has so
   * many).
   */
  detect(head: Uint8Array): boolean;
  /**
   * Reads the head of the file: how its sound is coded and where its packets begin. The container begins at
   * `startByte`, after any ID3v2 tags. Where only the decoder knows the rate (HE-AAC), a few packets are decoded.
   */
  open(reader: BlockReader, startByte: number, decoders: DecoderPort): Promise<AudioResult<Part>>;
}

/** A range of decoded samples that is heard, or silence. Plain JSON. */
export interface Piece {
  /** Where in the decoded samples it begins, after all pieces in front; absent for silence. */
  readonly position?: number;
  /** Absent in the last piece where it continues to the end of the track. */
  readonly samples?: number;
  /** Where the track ends so few samples after the piece, these belong to it. */
  readonly slackSamples?: number;
}

/**
 * What a walk has met that is worth a word or says how it continues; sums and flags by name. Plain JSON, so that a
 * checkpoint holds it. With an `entry`, `passedBytes` is the sum of the lengths of the packets in front of it.
 */
export type Faults = Record<string, string | number | boolean | undefined>;

/** Facts from the first packets. */
export interface PartStart {
  /**
   * Samples of the first run minus where it ends by the container (OGG): encoder delay, below 0 for a track that begins
   * late.
   */
  readonly startPadding: number;
  /** Time of the first packet by the container. */
  readonly firstSeconds: number | undefined;
  /** What the first packet decodes to, and how long it lasts by a clock that may be too coarse (MP4). */
  readonly packetSamples: number;
  readonly evenly: EvenTimes | undefined;
  /** Whether the first run is the only one. */
  readonly isOneRun: boolean;
}

/** How the walk of a part ended. */
export interface PartEnd {
  /** Decoded samples in all. */
  readonly position: number;
  readonly packets: number;
}

/** One recording: how it is coded and where its packets are. A file may hold several, one after another (OGG). */
export interface Part {
  readonly format: string;
  /** 'The MP4 file', for messages. */
  readonly where: string;
  readonly codec: CodecName;
  /** Rate of the decoded samples. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Where in the file `reopen` finds it again; absent for a file's only part. */
  readonly startByte?: number;
  openDecoder(): PacketDecoder;
  /**
   * Samples of each packet, asked for every packet in order; absent where the packets say so themselves. @param isStart
   * the first packet of the track comes first
   */
  counter?(isStart: boolean): PacketCounter;
  /**
   * The packets in order, from the first one or from one with this `entry`. What is not right with them goes into
   * `faults`.
   */
  walk(faults: Faults, entry?: number): PacketWalk;
  /** What is heard of the decoded samples; all of them without it. */
  heard?(start: PartStart, faults: Faults): readonly Piece[];
  /** Decoded samples at the end that are padding, of those that the last run may have too many; without it none. */
  paddingOf?(end: PartEnd & { readonly endPadding: number }, faults: Faults): number;
  /** Sentences for the job's owner about what was not as it should be. */
  warnings?(faults: Faults, end: PartEnd): readonly string[] | Promise<readonly string[]>;
  /** The recording after this one, once all of its packets were walked; and what to say of one that is not read. */
  next?(faults: Faults): Promise<{ readonly part?: Part; readonly warning?: string }>;
  /** A later part of the file, by its `startByte`. */
  reopen?(startByte: number): Promise<Part | undefined>;
}

/** Says how many samples each packet decodes to, without decoding it. Asked for every packet, in order. */
export interface PacketCounter {
  /** Bytes of the packet that `count` must see. */
  readonly headBytes: number;
  /** Whether a decoder may be restarted with the packet that comes next. */
  readonly canRestart: boolean;
  count(head: Uint8Array, length: number): number;
}

export const MIN_RATE_HZ = 1000;
export const MAX_RATE_HZ = 384_000;
export const MAX_CHANNELS = 64;

export const isUsableRate = (rateHz: number): boolean =>
  Number.isInteger(rateHz) && rateHz >= MIN_RATE_HZ && rateHz <= MAX_RATE_HZ;

/** Longest block that a decoder gives at once, samples (the longest FLAC block). */
export const MAX_BLOCK_SAMPLES = 65536;

/** Reading ends here: twice the longest recording that anything downstream takes. */
export const MAX_SCAN_SECONDS = 48 * 3600;

/** Why a rate or a number of channels is refused; undefined when both are fine. */
export function shapeFault(name: string, sampleRateHz: number, channels: number): ReturnType<typeof fail> | undefined {
  if (!Number.isInteger(channels) || channels < 1 || channels > MAX_CHANNELS) {
    return fail('unsupported', `The ${name} file has ${channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (isUsableRate(sampleRateHz)) return undefined;
  const range = `${MIN_RATE_HZ} to ${MAX_RATE_HZ} Hz`;
  return fail('unsupported', `The ${name} file has a sample rate of ${sampleRateHz} Hz; ${range} are supported.`);
}

/**
 * Warning of another file after the one that is read, which the container does not continue with.
 *
 * @param where 'The WAV file'
 */
export const trailingFileWarning = (where: string): string =>
  `${where} contains a second recording after the first; it was left out.`;

/** Steps that may pass in a row without a packet: real files have some tens. */
const MOST_STEPS = 200_000;
/** What a packet stands for: clusters and groups of one packet have that number of elements around it. */
const STEPS_PER_PACKET = 4;

/**
 * How long a walk may go on without a packet. The shortest elements and pages are a few bytes long, so that a file of
 * nothing else would keep a walk busy for minutes. Packets and bytes passed give steps back: other tracks, however
 * long, use nothing up.
 *
 * No more than `MOST_STEPS` are ever left, so a walk that begins in the middle never ends before one from the start
 * does.
 */
export class StepBudget {
  #left = MOST_STEPS;

  /** @param bytesPerStep bytes that make up for a step: fewer than a real one has */
  constructor(
    private readonly bytesPerStep: number,
    private position: number,
  ) {}

  /** Accounts for steps up to `position`, and for the packets they gave. False once too many gave none. */
  spend(position: number, steps: number, packets: number): boolean {
    const back = (position - this.position) / this.bytesPerStep + STEPS_PER_PACKET * packets;
    this.position = position;
    this.#left = Math.min(MOST_STEPS, this.#left + back - steps);
    return this.#left > 0;
  }
}

/**
 * Warning of a walk that `StepBudget` ended.
 *
 * @param where 'The OGG file'
 */
export const endlessWalkWarning = (where: string): string =>
  `${where} has a very long span without audio; what follows was left out.`;
