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

/**
 * RTTM separates its columns by white space, so that a name can hold none. Nor does it know quotes; readers that take it for a table which does (pandas, and
 * with it pyannote.database) would read on from one in front of a name to the next, over any number of rows.
 */
export function oneWord(text: string): string {
  const word = text.replace(/[\s\p{Cc}]+/gu, '_');
  return word.startsWith('"') ? word.replaceAll('"', "'") : word;
}
