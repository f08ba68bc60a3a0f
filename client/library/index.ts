/** Client of rollcall for browsers, Node and workers, without dependencies. */
export { isTerminal, type ListOptions, RollcallClient, type WaitOptions } from '../sdk/client.ts';
export type * from '../sdk/types.ts';
export { RollcallError, type RollcallErrorDetails, type RollcallErrorKind } from './error.ts';
export type { Recording, StreamableFile } from './recording.ts';
export {
  type Diarization,
  type DiarizeFileOptions,
  type Identification,
  type IdentifyFileOptions,
  type JobOptions,
  type JobProgress,
  type KnownVoice,
  Rollcall,
  type RollcallOptions,
  type TranscribeFileOptions,
  type Transcription,
} from './rollcall.ts';
export { verifyWebhook, type WebhookHeaders, type WebhookOptions } from './webhook.ts';
