export { assemble, type SpeakerRequest } from './assemble.ts';
export { assignOptimally } from './assignment.ts';
export { type Plda, parsePlda, project } from './clustering/plda.ts';
export {
  type Diarization,
  type FrameTracks,
  type ScoredTurn,
  type SpeakerTurn,
  type SpeakerVoice,
  speakerLabel,
} from './diarization.ts';
export { byLabel, joined, type OutputFlags, writeOutput } from './output.ts';
export { type DiarizationSettings, type SettingName, settingsOf } from './parameters.ts';
export { encodePart, openPart, type PartReader } from './part.ts';
export { type Parts, partsOf } from './parts.ts';
export { type AnalysisPorts, analyseShard } from './shard.ts';
