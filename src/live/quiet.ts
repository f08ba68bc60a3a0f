import type { QuietParameters } from '../diarization/levels.ts';
import { hopFrom, LEVEL_HOP_SAMPLES, measureLevels, QuietPlaces, SpeechLevels } from '../diarization/levels.ts';
import type { VoicingPort } from '../diarization/types.ts';
import type { Look } from './look.ts';
import { LIVE } from './parameters.ts';

export interface QuietState {
  readonly histogram: Int32Array;
  /** Tenths of a second of the stream that are in it or were no speech. */
  readonly countedHops: number;
}

/** Takes out of looks what is far below the speech heard so far (see `src/diarization/levels.ts`). */
export class Quiet {
  readonly #speech = new SpeechLevels();
  #countedHops = 0;

  constructor(
    private readonly parameters: QuietParameters,
    private readonly voicing: VoicingPort,
    private readonly minPeriodicity: number,
  ) {}

  /**
   * The look without speech where it is quiet; the same while too little speech was heard.
   *
   * @param window what was looked at, from `startSample` of the stream on
   */
  silence(seen: Look, window: Float32Array, startSample: number, frameShift: number): Look {
    const end = startSample + window.length;
    const levels = measureLevels(window, startSample, end - LEVEL_HOP_SAMPLES + 1, {
      isSpeechAt: (sample) => seen.isAnybody(Math.floor(sample / frameShift)),
      voicing: this.voicing,
      minPeriodicity: this.minPeriodicity,
    });
    const firstHop = hopFrom(startSample);
    // Looks overlap, and end within a tenth: each is counted once, with the first look that has it whole.
    this.#speech.add(levels.subarray(Math.max(0, this.#countedHops - firstHop)));
    this.#countedHops = Math.max(this.#countedHops, firstHop + levels.length);
    if (this.#speech.speechSeconds < LIVE.minLevelSeconds) return seen;
    const loud = this.#speech.loud(this.parameters.loudShare);
    const places = new QuietPlaces(levels, loud, this.parameters, firstHop);
    return seen.without((frame) => places.has((frame + 0.5) * frameShift));
  }

  save(): QuietState {
    return { histogram: Int32Array.from(this.#speech.histogram), countedHops: this.#countedHops };
  }

  restore({ histogram, countedHops }: QuietState): void {
    this.#speech.histogram.set(histogram);
    this.#countedHops = countedHops;
  }
}
