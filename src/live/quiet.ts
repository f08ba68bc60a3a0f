import type { QuietParameters } from '../diarization/levels.ts';
import { hopFrom, LEVEL_HOP_SAMPLES, measureLevels, QuietPlaces, SpeechLevels } from '../diarization/levels.ts';
import type { VoicingPort } from '../diarization/types.ts';
import type { Look } from './look.ts';
import { LIVE } from './parameters.ts';

export interface QuietState {
  readonly histogram: Int32Array;
}

/** Takes out of looks what is far below the speech heard so far (see `src/diarization/levels.ts`). */
export class Quiet {
  readonly #speech = new SpeechLevels();

  constructor(
    private readonly parameters: QuietParameters,
    private readonly voicing: VoicingPort,
    private readonly minPeriodicity: number,
  ) {}

  /**
   * The look without speech where it is quiet; the same while too little speech was heard.
   *
   * @param window what was looked at, from `startSample` of the stream on
   * @param newFromSample what comes before it was counted with an earlier look
   */
  silence(seen: Look, window: Float32Array, startSample: number, newFromSample: number, frameShift: number): Look {
    const end = startSample + window.length;
    const levels = measureLevels(window, startSample, end - LEVEL_HOP_SAMPLES + 1, {
      isSpeechAt: (sample) => seen.isAnybody(Math.floor(sample / frameShift)),
      voicing: this.voicing,
      minPeriodicity: this.minPeriodicity,
    });
    const firstHop = hopFrom(startSample);
    this.#speech.add(levels.subarray(Math.max(0, hopFrom(Math.max(0, newFromSample)) - firstHop)));
    if (this.#speech.speechSeconds < LIVE.minLevelSeconds) return seen;
    const loud = this.#speech.loud(this.parameters.loudShare);
    const places = new QuietPlaces(levels, loud, this.parameters, firstHop);
    return seen.without((frame) => places.has((frame + 0.5) * frameShift));
  }

  save(): QuietState {
    return { histogram: Int32Array.from(this.#speech.histogram) };
  }

  restore({ histogram }: QuietState): void {
    this.#speech.histogram.set(histogram);
  }
}
