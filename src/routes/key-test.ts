import { KEY_TEST_ANSWER, keyTestSchema } from '../contract/key-test.ts';
import { endpoint, errorResponses } from './endpoint.ts';

/** GET /v1/test: tells whether a key works. */
export const keyTest = endpoint(
  {
    method: 'get',
    path: '/v1/test',
    operationId: 'testKey',
    summary: 'Test a key',
    responses: {
      200: { description: 'The key works', content: { 'application/json': { schema: keyTestSchema } } },
      ...errorResponses(401),
    },
  },
  'any key',
  (c) => () => c.json(KEY_TEST_ANSWER),
);
