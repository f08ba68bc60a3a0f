import { AUDACITY, csv, diarizedJson, eaf, pyannoteAnnotation, rttm, SRT, TXT, textGrid, VTT } from './turn-formats.ts';
import type { Line, TurnFormat, TurnWriter } from './turn-text.ts';

const TRANSCRIPTION = 'turnLevelTranscription';
/** Lists of turns by preference: exclusive (only on request), with names, plain. */
const TURNS = ['exclusiveDiarization', 'identification', 'diarization'] as const;

/** Formats without text. */
const FORMATS_WITHOUT_TEXT: readonly TurnFormat[] = ['rttm', 'pyannote'];

/**
 * Name of the list of an output document that a format shows: the transcription if there is one and the format has
 * text, otherwise turns. Exclusive turns have the labels of the diarization and get names from the matches.
 *
 * @param has whether the document has a member of that name
 * @returns undefined for an output without turns
 */
export function listToShow(format: TurnFormat, has: (member: string) => boolean): string | undefined {
  if (!FORMATS_WITHOUT_TEXT.includes(format) && has(TRANSCRIPTION)) return TRANSCRIPTION;
  return TURNS.find(has);
}

/** Member of an identify output with the matches of its speakers. */
export const VOICEPRINTS = 'voiceprints';

/** A diarized speaker and the label of the matching voice. */
export interface Match {
  readonly speaker: string;
  readonly match: string | null;
}

/**
 * @param list result of `listToShow`
 * @param fileId file id of RTTM, see `fileIdOf`
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
  // Turns of `identification` already have names, and a name may equal the label of another speaker.
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

/** Two lines of subtitles. */
const MAX_CHARS = 84;
const MAX_SECONDS = 10;
const PAUSE_SECONDS = 1;
const SENTENCE_END = /[.!?…。！？]["'”’»)\]]*$/;

type SpokenLine = Line & { readonly text: string };

/**
 * Splits turns into segments: after a sentence, at a pause, and before a segment becomes too long for subtitles.
 *
 * @param turns lines of several words, with white space between words if the language has it
 * @param words words of all turns, in the same order
 */
export async function* segmentsOf(
  turns: AsyncIterable<SpokenLine>,
  words: AsyncIterable<SpokenLine>,
): AsyncGenerator<SpokenLine> {
  const following = words[Symbol.asyncIterator]();
  try {
    for await (const turn of turns) {
      let segment: SpokenLine | undefined;
      for (let at = 0; at < turn.text.length; ) {
        const next = await following.next();
        if (next.done) break;
        const word = next.value;
        const space = turn.text[at] === ' ' ? ' ' : '';
        at += space.length + word.text.length;
        if (segment && fitsSegment(word, segment)) {
          const end = Math.max(segment.end, word.end);
          segment = { ...segment, end, text: segment.text + space + word.text };
        } else {
          if (segment) yield segment;
          segment = word;
        }
      }
      if (segment) yield segment;
    }
  } finally {
    await following.return?.();
  }
}

function fitsSegment(word: SpokenLine, { start, end, text }: SpokenLine): boolean {
  return (
    !SENTENCE_END.test(text) &&
    word.start - end < PAUSE_SECONDS &&
    word.end - start <= MAX_SECONDS &&
    text.length + word.text.length < MAX_CHARS
  );
}
