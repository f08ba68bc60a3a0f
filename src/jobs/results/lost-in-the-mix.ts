/**
 * Level below which the mean of several channels is suspicious, dB of full scale. What Vorbis leaves of two that cancel each other out reaches −36;
 * a quiet recording in which there are turns is one.
 */
const SUSPICIOUS_DB = { 'nothing found': -35, 'something found': -70 } as const;

/**
 * What to say where a recording may have lost its sound when its channels were mixed: of a pair of which one is the other upside down nothing is left.
 *
 * @param loudestDb level of the loudest tenth of a second of the mean, dB of full scale
 * @returns a sentence or two; undefined where nothing points to it
 */
export function lostInTheMix(
  channels: number,
  loudestDb: number,
  outcome: keyof typeof SUSPICIOUS_DB,
): string | undefined {
  if (channels < 2 || loudestDb >= SUSPICIOUS_DB[outcome]) return undefined;
  return (
    `Mixed into one, its ${channels} channels are very quiet: where one is another upside down, they cancel each other out. ` +
    'If there is sound in them, send one of them alone.'
  );
}
