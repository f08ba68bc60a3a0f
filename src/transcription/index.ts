export { type Piece, piecesOf } from './pieces.ts';
export { speakersOfWords, spokenTurns } from './speakers.ts';
export type { EngineAnswer, Span, SpeakerSpan, SpeakerTurns, SpokenText, TimedText, Word } from './types.ts';
export { plausibleWords, type TimedWords, timedWords } from './words.ts';
