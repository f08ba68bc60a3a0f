export { fileIdOf } from './file-id.ts';
export { type ByteRange, ItemScanner, MemberScanner } from './json-scan.ts';
export { segmentsOf } from './segments.ts';
export { PLAIN_SRT, PLAIN_VTT } from './subtitles.ts';
export { type Line, TURN_FORMATS, type TurnFormat, type TurnWriter } from './types.ts';
export { createTurnWriter, listToShow, type Match, VOICEPRINTS, writeTurns } from './writer.ts';
