import { z } from '@hono/zod-openapi';
import { describeModel, modelIds, modelListSchema, modelSchema } from '../../contract/openai.ts';
import { type Endpoint, endpoint, openAiErrorResponses } from '../endpoint.ts';

/** GET /v1/models: the models of this service, as OpenAI lists theirs. */
export const listModels: Endpoint = {
  ...endpoint(
    {
      method: 'get',
      path: '/v1/models',
      operationId: 'listModels',
      summary: 'List the models',
      responses: {
        200: { description: 'The models', content: { 'application/json': { schema: modelListSchema } } },
        ...openAiErrorResponses(401),
      },
    },
    'any key',
    (c) => {
      const ids = modelIds(c.get('services').policy.transcription);
      return () => c.json({ object: 'list', data: ids.map(describeModel) });
    },
  ),
  errorForm: 'openai',
};

/** GET /v1/models/{id}: one of them. */
export const readModel: Endpoint = {
  ...endpoint(
    {
      method: 'get',
      path: '/v1/models/{id}',
      operationId: 'getModel',
      summary: 'Read a model',
      request: { params: z.object({ id: z.string() }) },
      responses: {
        200: { description: 'The model', content: { 'application/json': { schema: modelSchema } } },
        ...openAiErrorResponses(401, 404),
      },
    },
    'any key',
    (c) => {
      const id = c.req.param('id') ?? '';
      if (!modelIds(c.get('services').policy.transcription).includes(id)) return { kind: 'not_found' };
      return () => c.json(describeModel(id));
    },
  ),
  errorForm: 'openai',
};
