import { diarizeBodySchema, parseDiarizeBody } from '../contract/diarize.ts';
import { mapParsed } from '../contract/errors.ts';
import { createJobEndpoint } from './create-job.ts';

/** POST /v1/diarize: starts a diarization job. */
export const diarize = createJobEndpoint({
  path: '/v1/diarize',
  operationId: 'diarize',
  summary: 'Who spoke when',
  bodySchema: diarizeBodySchema,
  parse: (body, { policy }) => mapParsed(parseDiarizeBody(body, policy), (request) => ({ kind: 'diarize', request })),
});
