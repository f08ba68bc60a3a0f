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

/**
 * One line of a text, whatever it holds: labels are free text, and a line break would end a row or a cue. Runs of white
 * space and control characters become one space.
 */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

/**
 * A speaker's label on one line. One of white space alone is `_`, as in RTTM: a column or a voice span would have none.
 */
export function oneLabel(label: string): string {
  return oneLine(label) || '_';
}

/**
 * RTTM separates its columns by white space, so that a name can hold none. Nor does it know quotes; readers that take
 * it for a table which does (pandas, and with it pyannote.database) would read on from one in front of a name to the
 * next, over any number of rows.
 */
export function oneWord(text: string): string {
  const word = text.replace(/[\s\p{Cc}]+/gu, '_');
  return word.startsWith('"') ? word.replaceAll('"', "'") : word;
}

/** What RTTM calls a recording: the name in its path or address, without the ending and without white space. */
export function fileIdOf(fileOrUrl: string): string {
  const name = /^data:/i.test(fileOrUrl) ? '' : lastSegment(fileOrUrl);
  // No ending is longer, none has a space, and a date's last number is none.
  const stem = name.replace(/(?!^)\.(?=[a-z0-9]*[a-z])[a-z0-9]{1,5}$/i, '');
  return oneWord(stem) || 'audio';
}

function lastSegment(fileOrUrl: string): string {
  const isUrl = /^[a-z]+:\/\//i.test(fileOrUrl);
  const path = isUrl ? fileOrUrl.replace(/[?#].*$/s, '').replace(/^[a-z]+:\/\//i, '') : fileOrUrl;
  const segment = path.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
  try {
    return isUrl ? decodeURIComponent(segment) : segment;
  } catch {
    return segment;
  }
}
