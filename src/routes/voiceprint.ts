import { mapParsed } from '../contract/errors.ts';
import { parseVoiceprintBody, voiceprintBodySchema } from '../contract/voiceprint.ts';
import { createJobEndpoint } from './create-job.ts';

/** POST /v1/voiceprint: starts a job that makes a voiceprint of one person's voice. */
export const voiceprint = createJobEndpoint({
  path: '/v1/voiceprint',
  operationId: 'createVoiceprint',
  summary: 'Make a voiceprint',
  bodySchema: voiceprintBodySchema,
  parse: (body) => mapParsed(parseVoiceprintBody(body), (request) => ({ kind: 'voiceprint', request })),
});
