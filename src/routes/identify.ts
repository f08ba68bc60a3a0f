import { mapParsed } from '../contract/errors.ts';
import { identifyBodySchema, parseIdentifyBody } from '../contract/identify.ts';
import { createJobEndpoint } from './create-job.ts';

/** POST /v1/identify: starts a job that diarizes a recording and names the speakers whose voiceprints came with the request. */
export const identify = createJobEndpoint({
  path: '/v1/identify',
  operationId: 'identify',
  summary: 'Who of these people spoke when',
  bodySchema: identifyBodySchema,
  parse: (body, { voiceprintFault }) =>
    mapParsed(parseIdentifyBody(body, voiceprintFault), (request) => ({ kind: 'identify', request })),
});
