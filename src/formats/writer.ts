import { SRT, VTT } from './subtitles.ts';
import { csv, rttm, TXT } from './tables.ts';
import type { TurnFormat, TurnWriter } from './types.ts';

const TRANSCRIPTION = 'turnLevelTranscription';
/** Lists of turns, the most telling first: with names, without overlap, plain. */
const TURNS = ['identification', 'exclusiveDiarization', 'diarization'] as const;

/**
 * Which list of an output document a format shows: RTTM the turns alone, the others what was said in them where that is known.
 *
 * @param has whether the document has a member of that name
 * @returns undefined for an output without turns
 */
export function listToShow(format: TurnFormat, has: (member: string) => boolean): string | undefined {
  if (format !== 'rttm' && has(TRANSCRIPTION)) return TRANSCRIPTION;
  return TURNS.find(has);
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
