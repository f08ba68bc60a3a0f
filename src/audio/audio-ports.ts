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

/** Results of `MediaInstance` below 0, as `wasm/media/media.c` numbers them. */
export const MEDIA_CODE = {
  end: -1,
  unknownFormat: -2,
  noAudio: -3,
  noDecoder: -4,
  damaged: -5,
  changed: -6,
  noMemory: -7,
  encrypted: -8,
  /** The module failed; only `restore` may follow. */
  trapped: -100,
} as const;

/**
 * FFmpeg's demuxer and decoder on one recording. `open` and `step` throw what the read function throws; then only
 * `restore` may follow.
 */
export interface MediaInstance {
  /**
   * Recognises the format and opens the best audio stream.
   *
   * @param canSeek lets containers look for an index at the end of the file
   * @returns 0, or a code below 0
   */
  open(sizeBytes: number, canSeek: boolean): number;
  /** Reads at most one packet. @returns the number of samples a channel, 0 if there are none yet, or a code below 0 */
  step(): number;
  /**
   * Mixes the `count` samples of the last step, once: to one channel, or to the mean of those without low-frequency
   * effects. −1…1, except for PCM that is scaled otherwise. The view is valid until the next call.
   */
  mono(channel: number | undefined, count: number): Float32Array;
  /** Container's time of the first of them, in samples; NaN if unknown. */
  readonly position: number;
  /** Length of these samples by a container that rounds it to its clock; NaN for others. */
  readonly duration: number;
  /** Samples of one tick of that clock. */
  readonly tick: number;
  /** Of the first samples; 0 before them. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Packets that gave no samples, and those of them that are damaged. */
  readonly lostPackets: number;
  readonly damagedPackets: number;
  /** Time from which the container plays, in samples; NaN if it does not say. */
  readonly start: number;
  /** Time at which it ends, in samples; NaN if it does not say. */
  readonly end: number;
  /** Samples of one tick of the clock of `end`. */
  readonly endTick: number;
  /** FFmpeg's name of the format or codec, or the reason of its last failure; empty if there is none. */
  text(which: 'format' | 'codec' | 'reason'): string;
  /**
   * All state: the bytes of the memory in use.
   *
   * @param into an older copy, which is overwritten and returned if its length is right
   */
  copy(into?: Uint8Array): Uint8Array;
  /** Sets the state back to a copy, which may be of another instance of the same module. */
  restore(copy: Uint8Array): void;
}

export interface MediaPort {
  /**
   * @param read copies bytes of the recording at `position`, as many as it has at once; 0 at the end. May throw if it
   *   does not have them yet
   */
  create(read: (position: number, into: Uint8Array) => number): MediaInstance;
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
  /** FFmpeg's reason, in its words. */
  readonly detail?: string;
}

export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

/** Rate of everything after the decoders: 16 kHz mono. */
export const SAMPLE_RATE_HZ = 16_000;

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

/** An audio failure; `message` is one sentence for the person who sent the recording. */
export const fail = (
  kind: AudioError['kind'],
  message: string,
  detail?: string,
): { readonly ok: false; readonly error: AudioError } => ({
  ok: false,
  error: { kind, message, ...(detail && { detail }) },
});

export type AudioResult<T> = Result<T, AudioError>;
