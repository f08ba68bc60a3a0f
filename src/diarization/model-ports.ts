/** Overrides of pipeline parameters that were tuned with a model, by the names of `DiarizationSettings`. */
export type Tuning = { readonly [name: string]: number | boolean | Tuning };

/** Tuned overrides for all settings (`all`), and for single ones (`precision-2`, `community-1`), which win. */
export type TuningBySetting = { readonly [setting: string]: Tuning };

/** Facts about a segmentation model, read from its metadata and the manifest. */
export interface SegmentationInfo {
  readonly id: string;
  readonly windowSamples: number;
  /** Powerset classes per frame. */
  readonly classes: number;
  readonly maxLocalSpeakers: number;
  readonly maxSimultaneous: number;
  /** Frame j is centred on sample `frameShiftSamples * j + frameSizeSamples / 2` of the window. */
  readonly frameShiftSamples: number;
  readonly frameSizeSamples: number;
  readonly framesPerWindow: number;
  readonly tuned: TuningBySetting;
}

/**
 * Sliding-window speaker segmentation, one window per call, with the front end inside the model (whole) or outside
 * (split). Outside, frames that windows share are computed once, see `Segmenter`. The result is log-probabilities
 * [framesPerWindow * classes], row-major; the caller owns it.
 */
export type SegmentationPort =
  | {
      readonly form: 'whole';
      readonly info: SegmentationInfo;
      /** samples [windowSamples], or fewer */
      run(window: Float32Array): Promise<Float32Array>;
    }
  | {
      readonly form: 'split';
      readonly info: SegmentationInfo;
      /** mel powers [frames, 64] of a window, or of a shorter one */
      run(powers: Float32Array, frames: number): Promise<Float32Array>;
    };

export interface MelPowerPort {
  /**
   * Power in 64 mel bands, 25 ms / 10 ms, periodic Hann, snip edges (`training/segmentation/frontend.py`). samples at
   * 16 kHz in −1…1 → [frames, 64]; a frame depends, to the bit, only on its own 400 samples. The view is valid until
   * the next call.
   */
  compute(samples: Float32Array): Float32Array;
}

export interface EmbeddingInfo {
  readonly id: string;
  readonly dimension: number;
  /** Filterbank frames per trunk frame. */
  readonly frameStride: number;
  /** Length of a stretch: the audio of one trunk run. */
  readonly stretchSamples: number;
  /** Depth of the feature floor below the loud level of a stretch, see `raiseFloor`; undefined for no floor. */
  readonly featureFloorNats?: number;
  readonly tuned: TuningBySetting;
}

/** Output of the embedding trunk over one stretch. */
export interface TrunkOutput {
  /** [frameCount, channels] */
  readonly frames: Float32Array;
  readonly frameCount: number;
  readonly channels: number;
}

/** The next frames of a stream. */
export interface StreamedTrunkOutput extends TrunkOutput {
  /** For the next run. */
  readonly state: Uint8Array;
}

/** Speaker embedding in two halves (trunk once per stretch, head per mask) or whole (per mask). */
export type EmbeddingPort =
  | {
      readonly form: 'split';
      readonly info: EmbeddingInfo;
      /** mean-normalised filterbank [frames, 80] → trunk output; the caller owns it and may detach its buffers */
      trunk(feats: Float32Array, frames: number): Promise<TrunkOutput>;
      /**
       * The next frames of a stream from its features [frames, 80] since the last run, at most 992. The last four
       * frames are left to the next run, which has the audio after them.
       *
       * @param state of the last run; undefined at the start of the stream
       */
      continueTrunk(feats: Float32Array, frames: number, state: Uint8Array | undefined): Promise<StreamedTrunkOutput>;
      /** pooled [batch, 2 * channels] → embeddings [batch, dimension], not normalised */
      head(pooled: Float32Array, batch: number): Promise<Float32Array>;
    }
  | {
      readonly form: 'whole';
      readonly info: EmbeddingInfo;
      /** mean-normalised filterbank [frames, 80] of the kept frames → embedding [dimension], not normalised */
      embed(feats: Float32Array, frames: number): Promise<Float32Array>;
    };

export interface FilterbankPort {
  /**
   * Kaldi log-mel filterbank, 80 bands, 25 ms / 10 ms, Hamming, pre-emphasis 0.97, snip edges.
   * samples at 16 kHz in −1…1 → [frames, 80] without mean normalisation. The view is valid until the next call.
   */
  compute(samples: Float32Array): Float32Array;
}

/** The frames of one trunk output that belong to a speaker. */
export interface PoolingInput {
  readonly trunk: TrunkOutput;
  /** [frameCount], non-zero where the frame is kept */
  readonly mask: Uint8Array;
}

export interface PoolingPort {
  /**
   * Statistics pooling over the kept frames of all inputs together (Snyder et al., 2018): mean and standard deviation
   * of each channel (variance floor 1e-5). inputs → [2 * channels], means before deviations; undefined if no frame is
   * kept. The caller owns the result.
   */
  pool(inputs: readonly PoolingInput[]): Float32Array | undefined;
}
