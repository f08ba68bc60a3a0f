import { diarizedJson, pyannoteAnnotation } from './json.ts';
import { SRT, VTT } from './subtitles.ts';
import { AUDACITY, csv, rttm, TXT } from './tables.ts';
import { eaf, textGrid } from './tiers.ts';
import type { Line, TurnFormat, TurnWriter } from './types.ts';

const TRANSCRIPTION = 'turnLevelTranscription';
/** Lists of turns: without overlap, which only who asked for it gets; with names; plain. */
const TURNS = ['exclusiveDiarization', 'identification', 'diarization'] as const;

/** Formats that cannot hold text. */
const TURNS_ALONE: readonly TurnFormat[] = ['rttm', 'pyannote'];

/**
 * Which list of an output document a format shows: the transcription if there is one, but the turns in formats without
 * text. The turns without overlap have the labels of the diarization, and get their names from the matches.
 *
 * @param has whether the document has a member of that name
 * @returns undefined for an output without turns
 */
export function listToShow(format: TurnFormat, has: (member: string) => boolean): string | undefined {
  if (!TURNS_ALONE.includes(format) && has(TRANSCRIPTION)) return TRANSCRIPTION;
  return TURNS.find(has);
}

/** Member of an identify output with the matches of its speakers. */
export const VOICEPRINTS = 'voiceprints';

/** Of a diarized speaker: the label of the matching voice. */
export interface Match {
  readonly speaker: string;
  readonly match: string | null;
}

/**
 * @param list what `listToShow` chose
 * @param fileId what RTTM calls the recording
 * @param matches the `voiceprints` of an identify output, none for others
 * @param durationSeconds of the recording; undefined if unknown
 */
export function createTurnWriter(
  format: TurnFormat,
  list: string,
  fileId: string,
  matches: readonly Match[] = [],
  durationSeconds?: number,
): TurnWriter {
  const writer = writerOf(format, list, fileId, durationSeconds);
  // Those of `identification` have their names already, and a name may look like another speaker's label.
  if (list !== 'exclusiveDiarization' || matches.length === 0) return writer;
  const names = new Map(matches.map(({ speaker, match }) => [speaker, match ?? speaker]));
  return {
    ...writer,
    line: (line, index) => writer.line({ ...line, speaker: names.get(line.speaker) ?? line.speaker }, index),
  };
}

/** The whole text of a list that is in memory; parameters as for `createTurnWriter`. */
export function writeTurns(lines: readonly Line[], ...options: Parameters<typeof createTurnWriter>): string {
  const writer = createTurnWriter(...options);
  const body = lines.map((line, index) => writer.line(line, index));
  return [writer.head, ...body, ...(writer.tail?.() ?? [])].join('');
}

function writerOf(format: TurnFormat, list: string, fileId: string, durationSeconds: number | undefined): TurnWriter {
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
    case 'audacity':
      return AUDACITY;
    case 'textgrid':
      return textGrid(durationSeconds);
    case 'eaf':
      return eaf();
    case 'pyannote':
      return pyannoteAnnotation(fileId);
    case 'diarized_json':
      return diarizedJson(durationSeconds);
  }
}
