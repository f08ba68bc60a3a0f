export { type Enrolment, type EnrolmentFault, enrol } from './enrol.ts';
export { type MatchingOptions, matchSpeakers, type SpeakerMatch, turnConfidence } from './match.ts';
export { writeIdentification } from './output.ts';
export { DEFAULT_IDENTIFICATION, type IdentificationParameters, logOddsOf, probabilityOf } from './score.ts';
export { type DecodedVoiceprint, decodeVoiceprint, encodeVoiceprint, type VoiceprintFault } from './voiceprint.ts';
