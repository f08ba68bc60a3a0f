import { createRequire } from 'node:module';
import type { SherpaTurn } from './sherpa.ts';

interface WasmModule {
  readonly version: string;
  createOfflineSpeakerDiarization(config: {
    segmentation: {
      pyannote: { model: string; windowShiftRatio: number };
      numThreads: number;
      debug: number;
      provider: string;
    };
    embedding: { model: string; numThreads: number; debug: number; provider: string };
    clustering: { numClusters: number; threshold: number };
    minDurationOn: number;
    minDurationOff: number;
  }): { process(samples: Float32Array): SherpaTurn[]; free(): void };
}

/** sherpa-onnx compiled to WebAssembly (npm package `sherpa-onnx`), with the defaults of the native one. */
export class SherpaWasmDiarizer {
  readonly #wasm;

  constructor(segmentationPath: string, embedderPath: string, threshold: number) {
    const sherpa = createRequire(import.meta.url)('sherpa-onnx') as WasmModule;
    const shared = { numThreads: 1, debug: 0, provider: 'cpu' };
    this.#wasm = sherpa.createOfflineSpeakerDiarization({
      segmentation: { pyannote: { model: segmentationPath, windowShiftRatio: 0.1 }, ...shared },
      embedding: { model: embedderPath, ...shared },
      clustering: { numClusters: -1, threshold },
      minDurationOn: 0.3,
      minDurationOff: 0.5,
    });
  }

  /** @param samples 16 kHz mono, −1…1 */
  process(samples: Float32Array): SherpaTurn[] {
    return this.#wasm.process(samples);
  }

  close(): void {
    this.#wasm.free();
  }
}

/** Version of the installed package. */
export function sherpaWasmVersion(): string {
  return (createRequire(import.meta.url)('sherpa-onnx/package.json') as { version: string }).version;
}
