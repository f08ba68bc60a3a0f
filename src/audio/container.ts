import type { BlockReader } from './block-reader.ts';
import type { AudioResult } from './result.ts';
import type { CodecName, DecoderPort } from './types.ts';

/**
 * What every index of a recording says. An index is plain JSON, made once by `probeAudio`, and all that a later reader
 * (another process, another shard) needs beside the bytes.
 */
export interface IndexBase {
  readonly format: string;
  readonly codec: CodecName;
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Samples per channel at the source rate, without encoder delay and padding. */
  readonly totalSamples: number;
  readonly durationSeconds: number;
  /** One sentence or several for the job's owner, when the file was not quite as it should be. */
  readonly warning?: string;
}

/** One file format. A new one is a folder with one of these and a line in `registry.ts`. */
export interface Container<I extends IndexBase> {
  readonly format: I['format'];
  /** Whether the format begins with a magic of its own; those without are asked last. */
  readonly hasMagic: boolean;
  /** Tells from the first bytes (after any ID3v2 tags; at least 64 KiB of them where the file has so many). */
  detect(head: Uint8Array): boolean;
  /**
   * Finds rate, channels, exact length and what `readMono` needs. The container begins at `startByte`, behind any ID3v2 tags.
   * Where only the decoder knows the rate (HE-AAC), a few packets are decoded.
   */
  probe(reader: BlockReader, startByte: number, decoders: DecoderPort): Promise<AudioResult<I>>;
  /**
   * Mono samples at the source rate (mean of the channels without low-frequency effects), from `startSample` to the end of the recording, in blocks
   * of at most `MONO_BLOCK_SAMPLES`. Sample numbers are those of `totalSamples`. A view is valid until the next block.
   */
  readMono(reader: BlockReader, index: I, decoder: DecoderPort, startSample: number): AsyncGenerator<Float32Array>;
}

/** Longest block that `readMono` yields, samples (the longest FLAC block). */
export const MONO_BLOCK_SAMPLES = 65536;

export const MIN_RATE_HZ = 1000;
export const MAX_RATE_HZ = 384_000;
export const MAX_CHANNELS = 64;

export const isUsableRate = (rateHz: number): boolean =>
  Number.isInteger(rateHz) && rateHz >= MIN_RATE_HZ && rateHz <= MAX_RATE_HZ;

/** Scans of a file that may go on for ever end here: twice the longest recording that anything downstream takes. */
export const MAX_SCAN_SECONDS = 48 * 3600;
