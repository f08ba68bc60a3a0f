/** The bytes of one recording, from any storage, for one forward pass. Implemented by `platform`. */
export interface ByteSource {
  /** Total size in bytes. */
  readonly sizeBytes: number;
  /** Whether reading can begin at any offset. Otherwise all bytes before it are read. */
  readonly canSeek: boolean;
  /** The bytes from `offset` to the end, as they arrive. Ends the previous stream. */
  open(offset: number): Promise<ByteStream>;
  /**
   * Bytes `[offset, offset + length)`, fewer only at the end of the source. The open stream keeps its position.
   *
   * @throws if `canSeek` is false
   */
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface ByteStream {
  /** The next bytes, undefined at the end. The view is valid until the next call. */
  read(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** Thrown if a container needs an earlier position and the source cannot seek: a seekable copy is needed. */
export class SeekNeeded extends Error {
  override readonly name = 'SeekNeeded';
}

/** Coding of the samples of a recording; all but 'pcm' have a decoder. */
export type CodecName =
  | 'pcm'
  | 'mp3'
  | 'mp2'
  | 'flac'
  | 'aac'
  | 'alac'
  | 'vorbis'
  | 'opus'
  | 'ac3'
  | 'eac3'
  | 'adpcm-ima-wav'
  | 'adpcm-ms'
  | 'adpcm-ima-qt'
  | 'gsm-ms'
  | 'amr-nb'
  | 'amr-wb';

/** Parameters of a decoder. */
export interface CodecSpec {
  readonly codec: Exclude<CodecName, 'pcm'>;
  readonly sampleRateHz: number;
  readonly channels: number;
  /**
   * Codec private data: for FLAC the 34 bytes of STREAMINFO, for AAC the AudioSpecificConfig (none for packets with
   * ADTS headers), for ALAC the `alac` atom of 36 bytes, for Vorbis the three headers with Xiph lacing, for Opus the
   * OpusHead.
   */
  readonly extraData?: Uint8Array;
  /** Bytes of one block, for ADPCM and GSM in WAV. */
  readonly blockBytes?: number;
  /** Bits of one coded sample, for ADPCM. */
  readonly bitsPerCodedSample?: number;
  /** The channel to decode, from 0; absent for the mean of all. */
  readonly channel?: number;
}

/** One open decoder: packets in, mono out. */
export interface PacketDecoder {
  /**
   * Decodes one packet to mono (mean of the channels without low-frequency effects, or one of them), at the codec's
   * own rate, in −1…1.
   * A damaged packet gives an empty array, never a throw. The view is valid until the next call.
   */
  decode(packet: Uint8Array): Float32Array;
  /** Rate in Hz of the samples that `decode` returned last, from the decoder, not the container. */
  readonly sampleRateHz: number;
  close(): void;
}

export interface DecoderPort {
  /** The channel that decoders return, from 0; absent for the mean of all. */
  readonly channel?: number;
  open(spec: CodecSpec): PacketDecoder;
}

/** One open rational resampler to 16 kHz whose output is aligned to the absolute sample index of the recording. */
export interface Resampler {
  /** Input samples at the source rate; returns the outputs that are complete. The view is valid until the next call. */
  push(samples: Float32Array): Float32Array;
  /** Outputs that depend on samples after the end (taken as zero). */
  flush(): Float32Array;
  close(): void;
}

export interface ResamplerPort {
  /**
   * @param fromHz source rate
   * @param firstInputSample absolute index, at the source rate, of the first sample that will be pushed
   * @param firstOutputSample absolute 16 kHz index of the first output to return
   */
  open(fromHz: number, firstInputSample: number, firstOutputSample: number): Resampler;
  /** Input samples needed before the exact position of an output for it to be bit-equal to the unsharded run. */
  contextInputSamples(fromHz: number): number;
}

/** The reason why a recording cannot be used. `message` is one sentence for the person who sent it. */
export interface AudioError {
  readonly kind: 'empty' | 'not_audio' | 'unsupported' | 'corrupt' | 'no_samples';
  readonly message: string;
}

export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

/** Rate of everything after the decoders: 16 kHz mono. */
export const SAMPLE_RATE_HZ = 16_000;

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

/** An audio failure; `message` is one sentence for the person who sent the recording. */
export const fail = (
  kind: AudioError['kind'],
  message: string,
): { readonly ok: false; readonly error: AudioError } => ({
  ok: false,
  error: { kind, message },
});

export type AudioResult<T> = Result<T, AudioError>;
