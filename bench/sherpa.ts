import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { sherpaModels } from './pipeline.ts';
import type { LabelledRecording } from './recordings.ts';
import { type DiarizationError, diarizationError, segmentsFromTurns } from './score/der.ts';
import { cacheDir, logProgress } from './shared.ts';

/** A turn as the engine reports it, seconds. */
interface SherpaTurn {
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

/** The engine's defaults for the shortest turn and the shortest pause, seconds. */
const MIN_DURATION_ON_SECONDS = 0.3;
const MIN_DURATION_OFF_SECONDS = 0.5;

/**
 * sherpa-onnx's offline speaker diarization (native ONNX Runtime, one thread), the engine for comparison: 10 s windows,
 * 1 s step, one embedding per window and local speaker, agglomerative clustering.
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

/** Clustering thresholds: the engine's default, and the best of an earlier sweep. Each needs a full run. */
const THRESHOLDS = [0.5, 0.8];

/** Errors at one threshold, in the order of the recordings. */
export interface SweepRow {
  readonly threshold: number;
  readonly errors: readonly DiarizationError[];
}

/**
 * Runs sherpa-onnx at several clustering thresholds. It is deterministic, so results are cached under the hash of
 * engine, weights and audio.
 *
 * @returns undefined if its models are missing
 */
export function sweepSherpa(recordings: readonly LabelledRecording[]): SweepRow[] | undefined {
  const models = sherpaModels();
  if (!models) return undefined;
  const hash = createHash('sha256').update(sherpaVersion());
  for (const path of Object.values(models)) hash.update(readFileSync(path));
  for (const { samples } of recordings)
    hash.update(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
  const file = join(cacheDir(), `sherpa-${hash.digest('hex').slice(0, 16)}.json`);
  const cached = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as CachedRow[]) : [];
  let engine: SherpaDiarizer | undefined;
  return THRESHOLDS.map((threshold) => {
    let row = cached.find((candidate) => candidate.threshold === threshold);
    if (!row) {
      logProgress(`sherpa-onnx at threshold ${threshold}`);
      engine ??= new SherpaDiarizer(models.segmentation, models.embedder);
      engine.setThreshold(threshold);
      const running = engine;
      row = { threshold, turns: recordings.map(({ samples }) => running.process(samples)) };
      cached.push(row);
      writeFileSync(file, JSON.stringify(cached));
    }
    const errors = recordings.map(({ reference }, index) =>
      diarizationError(reference, segmentsFromTurns(row.turns[index])),
    );
    return { threshold, errors };
  });
}

interface CachedRow {
  readonly threshold: number;
  readonly turns: ReturnType<SherpaDiarizer['process']>[];
}
