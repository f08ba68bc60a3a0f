import type { StreamedTrunkOutput, TrunkOutput } from '../../diarization/model-ports.ts';
import { POWER_BANDS } from '../../diarization/segmenter.ts';
import { type NetworkResult, openNetwork } from './network-kernel.ts';

const BANDS = 80;
const TRUNK_CHANNELS = 512;
const CLASSES = 7;

export interface TrunkKernel {
  /** mean-normalised filterbank [frames, 80] → trunk output; the caller owns it and may detach its buffers */
  trunk(feats: Float32Array, frames: number): Promise<TrunkOutput>;
  /** The next frames of a stream from its next features, see `EmbeddingPort`. */
  continueTrunk(feats: Float32Array, frames: number, state: Uint8Array | undefined): Promise<StreamedTrunkOutput>;
  /** Linear memory in bytes. */
  memoryBytes(): number;
}

/**
 * CAM++'s trunk in 16-bit integers, over one instance of `wasm/networks/campplus.wasm`.
 *
 * @param weights the file that `training/kernels` makes of the trunk's ONNX file
 * @param pause called between two steps, each of which takes a tenth of the run's time
 * @throws if the weights are not those of this network
 */
export function createTrunkKernel(
  module: WebAssembly.Module,
  weights: Uint8Array,
  pause: () => Promise<void>,
): TrunkKernel {
  const shape = { name: "CAM++'s trunk", number: 1, itemSize: BANDS, channels: TRUNK_CHANNELS };
  const kernel = openNetwork(module, weights, shape, pause);
  return {
    async trunk(feats, frames) {
      return trunkOutput(await kernel.run(feats.subarray(0, frames * BANDS)));
    },
    async continueTrunk(feats, frames, state) {
      const result = await kernel.run(feats.subarray(0, frames * BANDS), { state });
      return { ...trunkOutput(result), state: result.state };
    },
    memoryBytes: () => kernel.memoryBytes(),
  };
}

function trunkOutput({ values, frames }: NetworkResult): TrunkOutput {
  return { frames: values, frameCount: frames, channels: TRUNK_CHANNELS };
}

export interface SegmentationKernel {
  /** samples of a window of up to 10 s → log-probabilities [frames, 7]; the caller owns them */
  run(window: Float32Array): Promise<Float32Array>;
  /** Linear memory in bytes. */
  memoryBytes(): number;
}

/**
 * segmentation-3.0 in 16-bit integers, over one instance of `wasm/networks/segmentation.wasm`. A window needs 991
 * samples.
 *
 * @param weights the file that `training/kernels` makes of the network's ONNX file
 * @param pause called between two steps, each of which takes at most a fifth of the run's time
 * @throws if the weights are not those of this network
 */
export function createSegmentationKernel(
  module: WebAssembly.Module,
  weights: Uint8Array,
  pause: () => Promise<void>,
): SegmentationKernel {
  const shape = { name: 'segmentation-3.0', number: 2, itemSize: 1, channels: CLASSES };
  const kernel = openNetwork(module, weights, shape, pause);
  return {
    run: async (window) => (await kernel.run(window)).values,
    memoryBytes: () => kernel.memoryBytes(),
  };
}

export interface PowerSegmentationKernel {
  /** mel powers [frames, 64] of a window of up to 10 s → log-probabilities [frames / 2, 7]; the caller owns them */
  run(powers: Float32Array, frames: number): Promise<Float32Array>;
  /** Linear memory in bytes. */
  memoryBytes(): number;
}

/**
 * segmentation-v8 in 16-bit integers, over one instance of `wasm/networks/segmentation-v8.wasm`. A window needs 4
 * frames of mel powers.
 *
 * @param weights the file that `training/kernels` makes of the network's ONNX file
 * @param pause called between two steps, each of which takes at most half of the run's time
 * @throws if the weights are not those of this network
 */
export function createSegmentationV8Kernel(
  module: WebAssembly.Module,
  weights: Uint8Array,
  pause: () => Promise<void>,
): PowerSegmentationKernel {
  const shape = { name: 'segmentation-v8', number: 3, itemSize: POWER_BANDS, channels: CLASSES };
  const kernel = openNetwork(module, weights, shape, pause);
  return {
    run: async (powers, frames) => (await kernel.run(powers.subarray(0, frames * POWER_BANDS))).values,
    memoryBytes: () => kernel.memoryBytes(),
  };
}
