/** Text forms of the turns of an output. */
export const TURN_FORMATS = ['rttm', 'srt', 'vtt', 'csv', 'txt'] as const;
export type TurnFormat = (typeof TURN_FORMATS)[number];

/** One speaker's turn, in seconds from the start of the audio, with what was said in it, if that is known. */
export interface Line {
  readonly speaker: string;
  readonly start: number;
  readonly end: number;
  readonly text?: string;
}

/** Writes turns one by one, so that a long list is never text as a whole. */
export interface TurnWriter {
  /** Comes before the first turn, also when there is none. */
  readonly head: string;
  /** @param index 0 for the first turn */
  line(line: Line, index: number): string;
}
