import { SRT, VTT } from './subtitles.ts';
import { csv, rttm, TXT } from './tables.ts';
import type { TurnFormat, TurnWriter } from './types.ts';

const TRANSCRIPTION = 'turnLevelTranscription';
/** Lists of turns: without overlap, which only who asked for it gets; with names; plain. */
const TURNS = ['exclusiveDiarization', 'identification', 'diarization'] as const;

/**
 * Which list of an output document a format shows: RTTM the turns alone, the others what was said in them where that is known. The turns without overlap
 * have the labels of the diarization; `namesOf` has the names for them.
 *
 * @param has whether the document has a member of that name
 * @returns undefined for an output without turns
 */
export function listToShow(format: TurnFormat, has: (member: string) => boolean): string | undefined {
  if (format !== 'rttm' && has(TRANSCRIPTION)) return TRANSCRIPTION;
  return TURNS.find(has);
}

/** Member of an identify output with what `namesOf` takes. */
export const VOICEPRINTS = 'voiceprints';

/**
 * What to call the speakers of a list of turns.
 *
 * @param list what `listToShow` chose; those of `identification` have their names already
 * @param matches the `voiceprints` of an identify output
 * @returns the label that matched, by the speaker's; nothing for speakers without a match
 */
export function namesOf(list: string, matches: readonly Match[]): ReadonlyMap<string, string> {
  if (list !== 'exclusiveDiarization') return new Map();
  return new Map(matches.flatMap(({ speaker, match }) => (match === null ? [] : [[speaker, match] as const])));
}

/** Of a diarized speaker: the label of the matching voice. */
export interface Match {
  readonly speaker: string;
  readonly match: string | null;
}

/**
 * @param list what `listToShow` chose
 * @param fileId what RTTM calls the recording
 */
export function createTurnWriter(format: TurnFormat, list: string, fileId: string): TurnWriter {
  switch (format) {
    case 'rttm':
      return rttm(fileId);
    case 'srt':
      return SRT;
    case 'vtt':
      return VTT;
    case 'csv':
      return csv(list === TRANSCRIPTION);
    case 'txt':
      return TXT;
  }
}
