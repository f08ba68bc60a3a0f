export { type AssembleOptions, assemble, type NoSpeech, type Parts, type SpeakerRequest } from './assemble.ts';
export { type Plda, parsePlda } from './clustering/plda.ts';
export { type Diarization, type FrameTracks, type ScoredTurn, type SpeakerTurn, speakerLabel } from './diarization.ts';
export { type OutputFlags, writeOutput } from './output.ts';
export { type DiarizationSettings, type SettingName, settingsOf } from './parameters.ts';
export { encodePart, openPart, type PartReader, type ShardPart } from './part.ts';
export { type AnalysisPorts, analyseShard, type Shard } from './shard.ts';
