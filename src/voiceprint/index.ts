export { type Enrolment, enrol } from './enrol.ts';
export { type MatchingOptions, matchSpeakers } from './match.ts';
export { voiceprintsMember, writeIdentification } from './output.ts';
export { DEFAULT_IDENTIFICATION, type IdentificationParameters, logOddsOf } from './score.ts';
export { decodeVoiceprint, encodeVoiceprint } from './voiceprint.ts';
