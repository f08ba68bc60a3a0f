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

/** A turn, in seconds from the start of the audio, with its text if that is known. */
export interface Line {
  readonly speaker: string;
  readonly start: number;
  readonly end: number;
  readonly text?: string;
  /** Channel of the recording, from 0; only if its channels were diarized separately. */
  readonly channel?: number;
}

/** Writes turns one by one, so that memory never holds a long list as text. Writers have state: one per list. */
export interface TurnWriter {
  /** Text before the first turn; written even without turns. */
  readonly head: string;
  /** @param index 0 for the first turn */
  line(line: Line, index: number): string;
  /** Text after the last turn, in chunks. */
  tail?(): Iterable<string>;
}

/**
 * A text on one line: labels are free text, and a line break would end a row or a cue. Runs of white space and control
 * characters become one space.
 */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

/** A label on one line. White space alone becomes `_`, as in RTTM: an empty label would lose a column. */
export function oneLabel(label: string): string {
  return oneLine(label) || '_';
}

/**
 * A text as one column of RTTM, which separates columns by white space. RTTM has no quotes either, but pandas, and with
 * it pyannote.database, reads a quote at the start of a name as one that ends at the next quote, rows later.
 */
export function oneWord(text: string): string {
  const word = text.replace(/[\s\p{Cc}]+/gu, '_');
  return word.startsWith('"') ? word.replaceAll('"', "'") : word;
}

/** The file id of RTTM: the name in a path or URL, without its extension and without white space. */
export function fileIdOf(fileOrUrl: string): string {
  const name = /^data:/i.test(fileOrUrl) ? '' : lastSegment(fileOrUrl);
  // An extension has at most five characters, no space, and a letter: the last number of a date is none.
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
