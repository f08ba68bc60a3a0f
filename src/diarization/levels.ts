import type { VoicingPort } from './types.ts';

/** Levels are measured over tenths of a second, on the recording's own grid. */
export const LEVEL_HOP_SAMPLES = 1600;

/** What is slower than speech, an offset or the tremor of a table, is no level: it goes with the mean of so much. */
const STEADY_SAMPLES = 160;

/** A byte for each tenth: its level in steps of 2 dB above the floor, whether it is voiced, whether there is speech. */
const FLOOR_DB = -126;
const STEP_DB = 2;
const LEVEL = 0x3f;
const VOICED = 0x40;
const SPEECH = 0x80;

/** What is told of a tenth besides its level. */
export interface LevelMarks {
  /** Whether the segmentation found speech at a sample of the recording. */
  readonly isSpeechAt: (sample: number) => boolean;
  readonly voicing: VoicingPort;
  /** Periodicity, 0…1, above which a tenth is voiced. */
  readonly minPeriodicity: number;
}

/**
 * Levels of the tenths of a second that begin in a piece of audio, a byte each: mean power, about the mean of every
 * hundredth of a second, in steps of 2 dB of full scale, 0…63 for
 * −126…0, 0x40 where it is voiced, and 0x80 where there seems to be speech.
 *
 * @param samples from `startSample` of the recording on, to the end of its last tenth (or of the recording)
 * @param endSample the last tenth begins before it
 */
export function measureLevels(
  samples: Float32Array,
  startSample: number,
  endSample: number,
  { isSpeechAt, voicing, minPeriodicity }: LevelMarks,
): Uint8Array {
  const first = hopFrom(startSample);
  const levels = new Uint8Array(Math.max(0, hopFrom(endSample) - first));
  const whole = first * LEVEL_HOP_SAMPLES - startSample;
  const periodicity = voicing.compute(samples.subarray(whole, whole + levels.length * LEVEL_HOP_SAMPLES));
  for (let row = 0; row < levels.length; row++) {
    const at = (first + row) * LEVEL_HOP_SAMPLES;
    const from = at - startSample;
    const to = Math.min(samples.length, from + LEVEL_HOP_SAMPLES);
    const power = powerOf(samples.subarray(from, to));
    const db = power > 0 ? 10 * Math.log10(power) : FLOOR_DB;
    levels[row] = Math.max(0, Math.min(LEVEL, Math.round((db - FLOOR_DB) / STEP_DB)));
    // A last tenth that is no whole one has no periodicity.
    if (periodicity[row] > minPeriodicity) levels[row] |= VOICED;
    if (isSpeechAt(at + LEVEL_HOP_SAMPLES / 2)) levels[row] |= SPEECH;
  }
  return levels;
}

/** Mean square about the mean of every hundredth of a second; 0 where there is nothing. */
function powerOf(samples: Float32Array): number {
  let energy = 0;
  for (let from = 0; from < samples.length; from += STEADY_SAMPLES) {
    const to = Math.min(samples.length, from + STEADY_SAMPLES);
    let sum = 0;
    let squares = 0;
    for (let index = from; index < to; index++) {
      sum += samples[index];
      squares += samples[index] * samples[index];
    }
    energy += Math.max(0, squares - (sum * sum) / (to - from));
  }
  return samples.length > 0 ? energy / samples.length : 0;
}

/** Level of the loudest tenth, dB of full scale; −126 where there is nothing. @param levels as of `measureLevels` */
export function loudestDb(levels: Uint8Array): number {
  return levels.reduce((loudest, level) => Math.max(loudest, level & LEVEL), 0) * STEP_DB + FLOOR_DB;
}

/** The first tenth that begins at a sample or after it. */
export function hopFrom(sample: number): number {
  return Math.ceil(sample / LEVEL_HOP_SAMPLES);
}

export interface QuietParameters {
  /** The level of loud speech: so large a share of the speech is not louder. */
  readonly loudShare: number;
  /** What is so much quieter than loud speech is nobody talking to the microphone. */
  readonly belowDb: number;
  /** …unless there is something louder within so much time… */
  readonly reachSeconds: number;
  /** …or so large a share of what is around is voiced: that is somebody far away from it. */
  readonly voicedShare: number;
  /** How far around that goes to either side. */
  readonly voicedReachSeconds: number;
}

/** The quiet places of a whole recording. @param levels of all of it */
export function quietPlacesOf(levels: Uint8Array, parameters: QuietParameters): QuietPlaces {
  const speech = new SpeechLevels();
  speech.add(levels);
  return new QuietPlaces(levels, speech.loud(parameters.loudShare), parameters);
}

/** How loud the speech of a recording is, from the levels of all of it. */
export class SpeechLevels {
  /** By level, in steps of 2 dB: tenths of a second with speech. */
  readonly histogram = new Uint32Array(LEVEL + 1);

  /** @param levels as of `measureLevels` */
  add(levels: Uint8Array): void {
    for (const level of levels) if ((level & SPEECH) !== 0) this.histogram[level & LEVEL]++;
  }

  get speechSeconds(): number {
    return this.histogram.reduce((sum, count) => sum + count, 0) * (LEVEL_HOP_SAMPLES / 16000);
  }

  /** The level, in dB above the floor, that a share of the speech does not exceed; −∞ where there is none. */
  loud(share: number): number {
    const speech = this.histogram.reduce((sum, count) => sum + count, 0);
    let below = 0;
    const level = this.histogram.findIndex((count) => {
      below += count;
      return below > 0 && below >= share * speech;
    });
    return level < 0 ? Number.NEGATIVE_INFINITY : level * STEP_DB;
  }
}

/**
 * Where a recording is so much quieter than its speech that nobody talks: rustling, breath and far-away noise in a pause, which a segmentation
 * that sees ten seconds at a time, and no levels, takes for speech when there is nothing else.
 */
export class QuietPlaces {
  /** By tenth of a second: 1 where it is quiet. */
  readonly #isQuiet: Uint8Array;

  /**
   * @param levels as of `measureLevels`
   * @param loud level of loud speech
   * @param firstHop tenth of a second of the recording that the levels begin with
   */
  constructor(
    levels: Uint8Array,
    loud: number,
    { belowDb, reachSeconds, voicedShare, voicedReachSeconds }: QuietParameters,
    private readonly firstHop = 0,
  ) {
    const reach = hopsOf(reachSeconds);
    const voicedReach = hopsOf(voicedReachSeconds);
    const isQuiet = new Uint8Array(levels.length).fill(1);
    levels.forEach((level, hop) => {
      if ((level & LEVEL) * STEP_DB >= loud - belowDb) isQuiet.fill(0, Math.max(0, hop - reach), hop + reach + 1);
    });
    for (let hop = 0; hop < levels.length; hop++) {
      if (isQuiet[hop] === 1 && shareAround(levels, VOICED, hop, voicedReach) >= voicedShare) isQuiet[hop] = 0;
    }
    this.#isQuiet = isQuiet;
  }

  has(sample: number): boolean {
    return this.#isQuiet[Math.floor(sample / LEVEL_HOP_SAMPLES) - this.firstHop] === 1;
  }
}

/** Whole tenths of a second. */
export function hopsOf(seconds: number): number {
  return Math.round((seconds * 16000) / LEVEL_HOP_SAMPLES);
}

/** Share of the bytes from `reach` before one to `reach` after it that have a bit, of those that there are. */
export function shareAround(bytes: Uint8Array, bit: number, at: number, reach: number): number {
  const from = Math.max(0, at - reach);
  const to = Math.min(bytes.length - 1, at + reach);
  let sum = 0;
  for (let near = from; near <= to; near++) if ((bytes[near] & bit) !== 0) sum++;
  return sum / (to - from + 1);
}
