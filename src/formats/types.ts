/** Text forms of the turns of an output. */
export const TURN_FORMATS = [
  'rttm',
  'srt',
  'vtt',
  'csv',
  'txt',
  'audacity',
  'textgrid',
  'eaf',
  'pyannote',
  'diarized_json',
] as const;
export type TurnFormat = (typeof TURN_FORMATS)[number];

/** One speaker's turn, in seconds from the start of the audio, with what was said in it, if that is known. */
export interface Line {
  readonly speaker: string;
  readonly start: number;
  readonly end: number;
  readonly text?: string;
  /** Channel of the recording, from 0; only if its channels were diarized separately. */
  readonly channel?: number;
}

/** Writes turns one by one, so that memory never holds a long list as text. Each list needs a new writer. */
export interface TurnWriter {
  /** Comes before the first turn, also when there is none. */
  readonly head: string;
  /** @param index 0 for the first turn */
  line(line: Line, index: number): string;
  /** Text after the last turn, in chunks. */
  tail?(): Iterable<string>;
}
