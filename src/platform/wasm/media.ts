import { MEDIA_CODE, type MediaInstance, type MediaPort } from '../../audio/audio-ports.ts';
import { instantiate } from './instance.ts';

/** Exports of `wasm/media/media.c`, which describes each. Pointers are byte offsets. */
interface MediaExports {
  readonly memory: WebAssembly.Memory;
  readonly __stack_pointer: WebAssembly.Global;
  rm_memory(): number;
  rm_open(sizeBytes: number, canSeek: number): number;
  rm_step(): number;
  rm_planes(): number;
  rm_mix(channel: number, count: number): void;
  rm_position(): number;
  rm_duration(): number;
  rm_tick(): number;
  rm_rate(): number;
  rm_channels(): number;
  rm_lost_packets(): number;
  rm_damaged_packets(): number;
  rm_start(): number;
  rm_end(): number;
  rm_end_tick(): number;
  rm_text(which: number): number;
}

const TEXTS = { format: 0, codec: 1, reason: 2 } as const;
const PAGE_BYTES = 1 << 16;

/** The result of a call, or a code if the module failed: a damaged file never ends the isolate. */
function orTrapped(call: () => number): number {
  try {
    return call();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError || isStackOverflow(error)) return MEDIA_CODE.trapped;
    throw error;
  }
}

const isStackOverflow = (error: unknown): boolean => error instanceof RangeError && /call stack/.test(error.message);

/** One recording in one instance of `media.wasm`: its memory is all the state there is. */
class WasmMedia implements MediaInstance {
  readonly #exports: MediaExports;
  readonly #stackPointer: number;
  #memory = new Uint8Array(0);

  constructor(module: WebAssembly.Module, read: (position: number, into: Uint8Array) => number) {
    this.#exports = instantiate<MediaExports>(module, {
      rollcall: {
        read: (position: number, pointer: number, length: number) =>
          read(position, this.#bytes().subarray(pointer, pointer + length)),
      },
    });
    this.#stackPointer = this.#exports.__stack_pointer.value;
  }

  open(sizeBytes: number, canSeek: boolean): number {
    return orTrapped(() => this.#exports.rm_open(sizeBytes, canSeek ? 1 : 0));
  }

  step(): number {
    return orTrapped(() => this.#exports.rm_step());
  }

  mono(channel: number | undefined, count: number): Float32Array {
    this.#exports.rm_mix(channel ?? -1, count);
    return new Float32Array(this.#exports.memory.buffer, this.#exports.rm_planes(), count);
  }

  get position(): number {
    return this.#exports.rm_position();
  }

  get duration(): number {
    return this.#exports.rm_duration();
  }

  get tick(): number {
    return this.#exports.rm_tick();
  }

  get sampleRateHz(): number {
    return this.#exports.rm_rate();
  }

  get channels(): number {
    return this.#exports.rm_channels();
  }

  get lostPackets(): number {
    return this.#exports.rm_lost_packets();
  }

  get damagedPackets(): number {
    return this.#exports.rm_damaged_packets();
  }

  get start(): number {
    return this.#exports.rm_start();
  }

  get end(): number {
    return this.#exports.rm_end();
  }

  get endTick(): number {
    return this.#exports.rm_end_tick();
  }

  text(which: keyof typeof TEXTS): string {
    const start = this.#exports.rm_text(TEXTS[which]);
    const bytes = this.#bytes();
    return String.fromCharCode(...bytes.subarray(start, bytes.indexOf(0, start)));
  }

  copy(into?: Uint8Array): Uint8Array {
    const length = this.#exports.rm_memory();
    const copy = into?.length === length ? into : new Uint8Array(length);
    // No call is running: the stack, which comes first, is of no use, and would only make snapshots larger.
    copy.set(this.#bytes().subarray(this.#stackPointer, length), this.#stackPointer);
    return copy;
  }

  restore(copy: Uint8Array): void {
    const { memory } = this.#exports;
    const missing = copy.length - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
    const bytes = this.#bytes();
    bytes.set(copy);
    bytes.fill(0, copy.length);
    this.#exports.__stack_pointer.value = this.#stackPointer;
  }

  /** The whole memory; growth detaches older views. */
  #bytes(): Uint8Array {
    const { buffer } = this.#exports.memory;
    if (this.#memory.buffer !== buffer) this.#memory = new Uint8Array(buffer);
    return this.#memory;
  }
}

/** FFmpeg's demuxers and decoders in `wasm/media/media.wasm`. */
export function createMedia(module: WebAssembly.Module): MediaPort {
  return { create: (read) => new WasmMedia(module, read) };
}
