/**
 * What to say where a file was put behind the one that is read, and cannot be read on into.
 *
 * @param where 'The WAV file'
 */
export const anotherBehind = (where: string): string =>
  `Behind the recording ${where.replace(/^The/, 'the')} holds another one, which was left out.`;
