import type { CodecSpec, DecoderPort, PacketDecoder } from '../../audio/audio-ports.ts';
import { instantiate, ResultBuffer } from './instance.ts';

/** Exports of `wasm/codecs/codecs.c`. Pointers and handles are byte offsets; 0 means none. */
interface CodecExports {
  readonly memory: WebAssembly.Memory;
  rc_alloc(bytes: number): number;
  rc_free(pointer: number): void;
  rc_open(
    name: number,
    sampleRateHz: number,
    channels: number,
    extra: number,
    extraBytes: number,
    blockAlign: number,
    bitsPerSample: number,
  ): number;
  rc_select(handle: number, channel: number): void;
  rc_input(handle: number, bytes: number): number;
  rc_decode(handle: number, bytes: number): number;
  rc_output(handle: number): number;
  rc_rate(handle: number): number;
  rc_close(handle: number): void;
}

/** Names of the decoders in libavcodec. */
const DECODER_NAMES: Record<CodecSpec['codec'], string> = {
  mp3: 'mp3float',
  mp2: 'mp2float',
  flac: 'flac',
  aac: 'aac',
  alac: 'alac',
  vorbis: 'vorbis',
  opus: 'opus',
  ac3: 'ac3',
  eac3: 'eac3',
  'adpcm-ima-wav': 'adpcm_ima_wav',
  'adpcm-ms': 'adpcm_ms',
  'adpcm-ima-qt': 'adpcm_ima_qt',
  'gsm-ms': 'gsm_ms',
  'amr-nb': 'amrnb',
  'amr-wb': 'amrwb',
};

const NO_BYTES = new Uint8Array(0);

/**
 * One instance with all its open decoders. A trap leaves its memory in an unknown state, so that the whole instance is
 * replaced.
 */
interface Runtime {
  readonly exports: CodecExports;
  broken: boolean;
}

function withBytes<T>(exports: CodecExports, bytes: Uint8Array, use: (pointer: number) => T): T {
  const pointer = bytes.length > 0 ? exports.rc_alloc(bytes.length) : 0;
  if (pointer !== 0) new Uint8Array(exports.memory.buffer, pointer, bytes.length).set(bytes);
  const result = use(pointer);
  if (pointer !== 0) exports.rc_free(pointer);
  return result;
}

function openHandle({ exports }: Runtime, spec: CodecSpec, extraData: Uint8Array): number {
  const name = new TextEncoder().encode(`${DECODER_NAMES[spec.codec]}\0`);
  const handle = withBytes(exports, name, (namePointer) =>
    withBytes(exports, extraData, (extra) =>
      exports.rc_open(
        namePointer,
        spec.sampleRateHz,
        spec.channels,
        extra,
        extraData.length,
        spec.blockBytes ?? 0,
        spec.bitsPerCodedSample ?? 0,
      ),
    ),
  );
  if (handle !== 0 && spec.channel !== undefined) exports.rc_select(handle, spec.channel);
  return handle;
}

class WasmDecoder implements PacketDecoder {
  private readonly result = new ResultBuffer();
  /** View of the instance's whole memory, renewed when the memory grows. */
  private memory = NO_BYTES;
  private runtime: Runtime | undefined;
  private handle = 0;
  private closed = false;
  private rateHz: number;

  constructor(
    private readonly current: () => Runtime,
    private readonly spec: CodecSpec,
  ) {
    this.rateHz = spec.sampleRateHz;
    if (!this.opened()) throw new Error(`the decoder for ${spec.codec} is not in this build or refuses its parameters`);
  }

  get sampleRateHz(): number {
    return this.rateHz;
  }

  decode(packet: Uint8Array): Float32Array {
    try {
      const runtime = this.ready();
      if (!runtime) return this.result.reserve(0);
      let count = this.decodeOnce(runtime, packet);
      if (count < 0 && this.spec.codec === 'flac') count = this.decodeAlone(runtime, packet);
      if (count <= 0) return this.result.reserve(0);
      this.rateHz = runtime.exports.rc_rate(this.handle);
      return this.result.copy(runtime.exports.memory, runtime.exports.rc_output(this.handle), count);
    } catch (error) {
      this.discardInstance(error);
      return this.result.reserve(0);
    }
  }

  close(): void {
    if (this.runtime && !this.runtime.broken) this.runtime.exports.rc_close(this.handle);
    this.closed = true;
    this.runtime = undefined;
    this.handle = 0;
  }

  /** @returns number of samples at `rc_output`; 0 for a packet without any, −1 for a damaged one */
  private decodeOnce({ exports }: Runtime, packet: Uint8Array): number {
    const input = exports.rc_input(this.handle, packet.length);
    if (input === 0) return -1;
    if (this.memory.buffer !== exports.memory.buffer) this.memory = new Uint8Array(exports.memory.buffer);
    this.memory.set(packet, input);
    return exports.rc_decode(this.handle, packet.length);
  }

  /**
   * Most FLAC frames contain all parameters that a decoder needs. A frame that contradicts the private data is decoded
   * without it: the data may be damaged, or belong to the first of two joined recordings.
   */
  private decodeAlone(runtime: Runtime, packet: Uint8Array): number {
    this.reopen(runtime, NO_BYTES);
    const count = this.handle === 0 ? -1 : this.decodeOnce(runtime, packet);
    if (count <= 0) this.reopen(runtime, this.spec.extraData ?? NO_BYTES);
    return count;
  }

  private reopen(runtime: Runtime, extraData: Uint8Array): void {
    if (this.handle !== 0) runtime.exports.rc_close(this.handle);
    this.handle = openHandle(runtime, this.spec, extraData) || openHandle(runtime, this.spec, NO_BYTES);
  }

  private opened(): boolean {
    try {
      return this.ready() !== undefined;
    } catch (error) {
      this.discardInstance(error);
      return false;
    }
  }

  /** After a trap the next decode uses a new instance. */
  private discardInstance(error: unknown): void {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    if (this.runtime) this.runtime.broken = true;
  }

  /** The current instance, with the decoder opened in it again after a trap. */
  private ready(): Runtime | undefined {
    if (this.closed) return undefined;
    const runtime = this.current();
    if (runtime !== this.runtime) {
      this.runtime = runtime;
      this.handle = 0;
      this.reopen(runtime, this.spec.extraData ?? NO_BYTES);
    }
    return this.handle === 0 ? undefined : runtime;
  }
}

export interface Decoders extends DecoderPort {
  /** Linear memory in use, in bytes; it never shrinks. */
  memoryBytes(): number;
}

/**
 * Audio decoders: libavcodec in `wasm/codecs/codecs.wasm`, one instance for all decoders opened here. `open` throws
 * only for a codec that is missing in the module.
 */
export function createDecoders(module: WebAssembly.Module): Decoders {
  let runtime: Runtime | undefined;
  const current = () => {
    if (!runtime || runtime.broken) runtime = { exports: instantiate<CodecExports>(module), broken: false };
    return runtime;
  };
  return {
    open: (spec) => new WasmDecoder(current, spec),
    memoryBytes: () => current().exports.memory.buffer.byteLength,
  };
}
