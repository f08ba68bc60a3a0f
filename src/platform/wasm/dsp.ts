import type { Resampler, ResamplerPort } from '../../audio/audio-ports.ts';
import type { FilterbankPort, MelPowerPort, PoolingInput, PoolingPort } from '../../diarization/model-ports.ts';
import { POWER_BANDS } from '../../diarization/segmenter.ts';
import { instantiate, ResultBuffer } from './instance.ts';

/** Exports of `wasm/dsp/*.c`. Pointers and handles are byte offsets; 0 means none. */
interface DspExports {
  readonly memory: WebAssembly.Memory;
  rs_context(rateHz: number): number;
  rs_open(rateHz: number, firstInput: number, firstOutput: number): number;
  rs_input(handle: number, count: number): number;
  rs_push(handle: number, count: number): number;
  rs_flush(handle: number): number;
  rs_output(handle: number): number;
  rs_close(handle: number): void;
  fb_input(): number;
  fb_capacity(): number;
  fb_output(): number;
  fb_compute(samples: number): number;
  mp_input(): number;
  mp_capacity(): number;
  mp_output(): number;
  mp_compute(samples: number): number;
  pool_begin(channels: number): number;
  pool_rows(): number;
  pool_stride(): number;
  pool_frames(): number;
  pool_add(rows: number): void;
  pool_finish(): number;
}

/** Maximum number of samples per call, which bounds the wasm memory. */
const PUSH_SAMPLES = 32768;
const FRAME_SAMPLES = 400;
const FRAME_SHIFT_SAMPLES = 160;
const BANDS = 80;

export interface Dsp {
  readonly resampler: ResamplerPort;
  readonly filterbank: FilterbankPort;
  readonly melPower: MelPowerPort;
  readonly pooling: PoolingPort;
  /** Linear memory in use, in bytes; it never shrinks. */
  memoryBytes(): number;
}

class WasmResampler implements Resampler {
  private readonly result = new ResultBuffer();

  constructor(
    private readonly dsp: DspExports,
    private handle: number,
  ) {}

  push(samples: Float32Array): Float32Array {
    if (samples.length <= PUSH_SAMPLES) {
      const count = this.pushBlock(samples);
      return this.result.copy(this.dsp.memory, this.dsp.rs_output(this.handle), count);
    }
    const blocks: Float32Array[] = [];
    let total = 0;
    for (let at = 0; at < samples.length; at += PUSH_SAMPLES) {
      const count = this.pushBlock(samples.subarray(at, at + PUSH_SAMPLES));
      blocks.push(new Float32Array(this.dsp.memory.buffer, this.dsp.rs_output(this.handle), count).slice());
      total += count;
    }
    const joined = this.result.reserve(total);
    let at = 0;
    for (const block of blocks) {
      joined.set(block, at);
      at += block.length;
    }
    return joined;
  }

  flush(): Float32Array {
    const count = checked(this.dsp.rs_flush(this.handle));
    return this.result.copy(this.dsp.memory, this.dsp.rs_output(this.handle), count);
  }

  close(): void {
    this.dsp.rs_close(this.handle);
    this.handle = 0;
  }

  private pushBlock(samples: Float32Array): number {
    const input = this.dsp.rs_input(this.handle, samples.length);
    if (input === 0 && samples.length > 0) throw new RangeError('the resampler is out of memory');
    if (samples.length > 0) new Float32Array(this.dsp.memory.buffer, input, samples.length).set(samples);
    return checked(this.dsp.rs_push(this.handle, samples.length));
  }
}

function checked(count: number): number {
  if (count < 0) throw new RangeError('the resampler is out of memory');
  return count;
}

function createResampler(dsp: DspExports): ResamplerPort {
  return {
    open(fromHz, firstInputSample, firstOutputSample) {
      const handle = dsp.rs_open(fromHz, firstInputSample, firstOutputSample);
      if (handle === 0)
        throw new RangeError(
          `cannot resample from ${fromHz} Hz: outside 1000…1000000 Hz, ` +
            'the input starts long after the output, or out of memory',
        );
      return new WasmResampler(dsp, handle);
    },
    contextInputSamples: (fromHz) => dsp.rs_context(fromHz),
  };
}

/**
 * A function of frames of 400 samples every 160 samples, which processes one block per call. Positions are in bytes,
 * the capacity is in samples.
 */
interface FrameFunction {
  readonly input: number;
  readonly capacity: number;
  readonly output: number;
  run(samples: number): number;
}

/** @returns samples → [frames, bands], block by block */
function createFrames(
  dsp: DspExports,
  bands: number,
  { input, capacity, output, run }: FrameFunction,
): FilterbankPort & MelPowerPort {
  const blockFrames = 1 + Math.floor((capacity - FRAME_SAMPLES) / FRAME_SHIFT_SAMPLES);
  const buffer = new ResultBuffer();
  return {
    compute(samples) {
      const frames =
        samples.length < FRAME_SAMPLES ? 0 : 1 + Math.floor((samples.length - FRAME_SAMPLES) / FRAME_SHIFT_SAMPLES);
      const result = buffer.reserve(frames * bands);
      for (let first = 0; first < frames; first += blockFrames) {
        const count = Math.min(blockFrames, frames - first);
        const start = first * FRAME_SHIFT_SAMPLES;
        const length = (count - 1) * FRAME_SHIFT_SAMPLES + FRAME_SAMPLES;
        new Float32Array(dsp.memory.buffer, input, length).set(samples.subarray(start, start + length));
        run(length);
        result.set(new Float32Array(dsp.memory.buffer, output, count * bands), first * bands);
      }
      return result;
    },
  };
}

function createPooling(dsp: DspExports): PoolingPort {
  return {
    pool(pieces) {
      const channels = pieces[0]?.trunk.channels ?? 0;
      if (!pieces.some(({ mask }) => mask.some((kept) => kept !== 0))) return undefined;
      if (dsp.pool_begin(channels) === 0) throw new RangeError(`cannot pool ${channels} channels`);
      addPieces(dsp, pieces, channels);
      const stride = dsp.pool_stride();
      const pointer = dsp.pool_finish();
      const out = new Float32Array(2 * channels);
      out.set(new Float32Array(dsp.memory.buffer, pointer, channels), 0);
      out.set(new Float32Array(dsp.memory.buffer, pointer + 4 * stride, channels), channels);
      return out;
    },
  };
}

/**
 * Copies the kept frames block by block and adds them to the open pool. Blocks are filled across the bounds of pieces,
 * so that the result depends bit for bit only on the kept frames.
 */
function addPieces(dsp: DspExports, pieces: readonly PoolingInput[], channels: number): void {
  const rows = dsp.pool_rows();
  const stride = dsp.pool_stride();
  const frames = new Float32Array(dsp.memory.buffer, dsp.pool_frames(), rows * stride);
  let filled = 0;
  for (const { trunk, mask } of pieces) {
    if (trunk.channels !== channels || mask.length !== trunk.frameCount)
      throw new RangeError('pieces of one pool must agree in channels, and a mask with its frames');
    for (let frame = 0; frame < trunk.frameCount; ) {
      if (mask[frame] === 0) {
        frame++;
        continue;
      }
      // Copy runs of kept frames at once, if rows are contiguous: channels may be rounded up to whole vectors.
      const longest = stride === channels ? Math.min(rows - filled, trunk.frameCount - frame) : 1;
      let run = 1;
      while (run < longest && mask[frame + run] !== 0) run++;
      const from = frame * channels;
      const to = from + run * channels;
      frames.set(trunk.frames.subarray(from, to), filled * stride);
      frame += run;
      filled += run;
      if (filled === rows) {
        dsp.pool_add(filled);
        filled = 0;
      }
    }
  }
  if (filled > 0) dsp.pool_add(filled);
}

/**
 * Signal processing in WebAssembly: resampler, filterbank, mel powers and pooling over one instance of
 * `wasm/dsp/dsp.wasm`. Results are outside the wasm memory.
 */
export function createDsp(module: WebAssembly.Module): Dsp {
  const dsp = instantiate<DspExports>(module);
  return {
    resampler: createResampler(dsp),
    filterbank: createFrames(dsp, BANDS, {
      input: dsp.fb_input(),
      capacity: dsp.fb_capacity(),
      output: dsp.fb_output(),
      run: (samples) => dsp.fb_compute(samples),
    }),
    melPower: createFrames(dsp, POWER_BANDS, {
      input: dsp.mp_input(),
      capacity: dsp.mp_capacity(),
      output: dsp.mp_output(),
      run: (samples) => dsp.mp_compute(samples),
    }),
    pooling: createPooling(dsp),
    memoryBytes: () => dsp.memory.buffer.byteLength,
  };
}
