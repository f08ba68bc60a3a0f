import { createRequire } from 'node:module';

/** A turn as the engine reports it, seconds. */
export interface SherpaTurn {
  readonly speaker: number;
  readonly start: number;
  readonly end: number;
}

interface NativeDiarization {
  readonly sampleRate: number;
  process(samples: Float32Array): SherpaTurn[];
  setConfig(config: { clustering: { numClusters: number; threshold: number } }): void;
}

interface NativeModule {
  readonly version: string;
  OfflineSpeakerDiarization: new (config: {
    segmentation: { pyannote: { model: string }; numThreads: number; provider: 'cpu' };
    embedding: { model: string; numThreads: number; provider: 'cpu' };
    clustering: { numClusters: number; threshold: number };
    minDurationOn: number;
    minDurationOff: number;
  }) => NativeDiarization;
}

/** The engine's own defaults for the shortest turn and the shortest pause, seconds. */
const MIN_DURATION_ON_SECONDS = 0.3;
const MIN_DURATION_OFF_SECONDS = 0.5;

/**
 * sherpa-onnx's offline speaker diarization (native ONNX Runtime, one thread), the engine that this product is
 * measured beside: 10 s windows, 1 s step, one embedding per window and local speaker, agglomerative clustering.
 */
export class SherpaDiarizer {
  readonly #native: NativeDiarization;

  /** @param segmentationPath a powerset model with sherpa-onnx's metadata @param embedderPath a whole embedder */
  constructor(segmentationPath: string, embedderPath: string, threshold = 0.5) {
    this.#native = new (loadSherpa().OfflineSpeakerDiarization)({
      segmentation: { pyannote: { model: segmentationPath }, numThreads: 1, provider: 'cpu' },
      embedding: { model: embedderPath, numThreads: 1, provider: 'cpu' },
      clustering: { numClusters: -1, threshold },
      minDurationOn: MIN_DURATION_ON_SECONDS,
      minDurationOff: MIN_DURATION_OFF_SECONDS,
    });
  }

  /** @param samples 16 kHz mono, −1…1 */
  process(samples: Float32Array): SherpaTurn[] {
    return this.#native.process(samples);
  }

  /** Distance at which agglomeration stops: higher finds fewer speakers. */
  setThreshold(threshold: number): void {
    this.#native.setConfig({ clustering: { numClusters: -1, threshold } });
  }

  /** Clusters into a known number of speakers. */
  setSpeakerCount(speakers: number): void {
    this.#native.setConfig({ clustering: { numClusters: speakers, threshold: 0.5 } });
  }
}

function loadSherpa(): NativeModule {
  return createRequire(import.meta.url)('sherpa-onnx-node') as NativeModule;
}

/** Version of the installed engine. */
export function sherpaVersion(): string {
  const manifest = createRequire(import.meta.url)('sherpa-onnx-node/package.json') as { version: string };
  return manifest.version;
}
