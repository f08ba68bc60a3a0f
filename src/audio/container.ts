import type { BlockReader } from './block-reader.ts';
import type { EvenTimes, PacketWalk } from './packets/packet.ts';
import type { AudioResult } from './result.ts';
import type { CodecName, DecoderPort, PacketDecoder } from './types.ts';

/** One file format. A new one is a folder with one of these and a line in `registry.ts`. */
export interface Container {
  readonly format: string;
  /** Whether the format begins with a magic of its own; those without are asked last. */
  readonly hasMagic: boolean;
  /** Tells from the first bytes (after any ID3v2 tags; at least 64 KiB of them where the file has so many). */
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

/** What the first packets tell. */
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
