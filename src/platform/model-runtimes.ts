import type { OnnxRuntime } from './onnx/runtime.ts';
import {
  createSegmentationKernel,
  createSegmentationV8Kernel,
  createTrunkKernel,
  type PowerSegmentationKernel,
  type SegmentationKernel,
  type TrunkKernel,
} from './wasm/networks.ts';

type Pause = () => Promise<void>;

/** What runs the models of an isolate: ONNX Runtime, and a kernel for each of the networks that take most time. */
export class ModelRuntimes {
  readonly #kernels: { memoryBytes(): number }[] = [];

  constructor(
    readonly onnx: OnnxRuntime,
    private readonly modules: Readonly<Record<'segmentation' | 'segmentationV8' | 'trunk', WebAssembly.Module>>,
  ) {}

  /** segmentation-3.0 on packed weights. */
  segmentationKernel(weights: Uint8Array, pause: Pause): SegmentationKernel {
    return this.#kept(createSegmentationKernel(this.modules.segmentation, weights, pause));
  }

  /** segmentation-v8 on packed weights. */
  segmentationV8Kernel(weights: Uint8Array, pause: Pause): PowerSegmentationKernel {
    return this.#kept(createSegmentationV8Kernel(this.modules.segmentationV8, weights, pause));
  }

  /** CAM++'s trunk on packed weights. */
  trunkKernel(weights: Uint8Array, pause: Pause): TrunkKernel {
    return this.#kept(createTrunkKernel(this.modules.trunk, weights, pause));
  }

  /** WebAssembly memory now, in bytes. */
  memoryBytes(): number {
    return this.onnx.memoryBytes() + this.#kernels.reduce((sum, kernel) => sum + kernel.memoryBytes(), 0);
  }

  #kept<Kernel extends { memoryBytes(): number }>(kernel: Kernel): Kernel {
    this.#kernels.push(kernel);
    return kernel;
  }
}
