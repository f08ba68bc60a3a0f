/**
 * One line of a text, whatever it holds: labels are free text, and a line break would end a row or a cue. Runs of white
 * space and control characters become one space.
 */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

/** A speaker's label on one line. One of white space alone is `_`, as in RTTM: a column or a voice span would have none. */
export function oneLabel(label: string): string {
  return oneLine(label) || '_';
}

/** RTTM separates its columns by white space, so that a name can hold none. */
export function oneWord(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, '_');
}
