import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it, vi } from 'vitest';
import { createApp, ENDPOINTS } from './app.ts';
import { apiDocument } from './routes/pages.ts';

const noBytes = async () => new ArrayBuffer(0);
const app = createApp(
  () => {
    throw new Error('no service is called for the document');
  },
  {
    docs: { page: '', styles: '', script: '', referenceVersion: '0', reference: noBytes, referenceStyles: noBytes },
    playground: { page: '', styles: '', script: '', microphoneFrames: '', sample: noBytes },
  },
);
const document = apiDocument(app, '1.2.3');
type Webhooks = Record<string, { post: { parameters: { name: string; in: string }[] } }>;
/** All operations, each named `method path`. */
const operations = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
);

it('answers 503 to monitors and 500 to other requests if its settings are invalid', async () => {
  vi.spyOn(console, 'error')
    .mockImplementationOnce(() => {})
    .mockImplementationOnce(() => {});
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  const call = (path: string) => app.request(path, {}, {}, context);
  const answer = await call('/healthz');
  expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '10']);
  expect((await call('/v1/test')).status).toBe(500);
});

describe('the API document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
    expect(result).toEqual({ valid: true });
  });

  it('describes every endpoint', () => {
    const names = ENDPOINTS.map(({ route }) => `${route.method} ${route.path}`);
    const pages = ['get /', 'get /docs', 'get /openapi.json', 'post /mcp'];
    expect(operations.map(({ name }) => name).sort()).toEqual([...names, ...pages].sort());
  });

  it('gives each operation a unique id, a described tag, a summary and its security', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = document.tags?.map(({ name }) => name) ?? [];
    expect(tags).toEqual(expect.arrayContaining(['Jobs', 'Media', 'Account', 'Documentation']));
    for (const tag of tags)
      expect(
        operations.some((operation) => operation.tags?.includes(tag)),
        tag,
      ).toBe(true);
    for (const { name, operationId, tags: own, summary, security } of operations) {
      expect({ name, operationId, own, summary, security }).toEqual({
        name,
        operationId: expect.stringMatching(/^[a-z][a-zA-Z0-9]+$/),
        own: [expect.toBeOneOf(tags)],
        summary: expect.stringMatching(/\w/),
        security: expect.toBeOneOf([[], [{ bearer: [] }]]),
      });
    }
    expect(document.paths?.['/v1/media/upload/{ticket}']?.put?.security).toEqual([]);
    expect(document.paths?.['/v1/diarize']?.post?.security).toEqual([{ bearer: [] }]);
    expect(document.components?.securitySchemes?.bearer).toMatchObject({ type: 'http', scheme: 'bearer' });
  });

  it('describes every answer: its headers and, for errors, its body', () => {
    for (const { name, security, responses } of operations) {
      const isPublic = security?.length === 0;
      // An upload has no key, but its address names the account that it counts for.
      const isCounted = !isPublic || name === 'put /v1/media/upload/{ticket}';
      expect('429' in responses, name).toBe(true);
      for (const [status, response] of Object.entries(responses as Record<string, Record<string, object>>)) {
        const where = `${name} ${status}`;
        const headers = Object.keys(response.headers);
        expect(headers, where).toContain('X-Request-Id');
        expect(headers.includes('X-RateLimit-Remaining'), where).toBe(isCounted && status !== '401');
        expect(headers.includes('Retry-After'), where).toBe(status === '429' || status === '503');
        // The MCP SDK answers 406 with a body of its own format.
        if (Number(status) < 400 || where === 'post /mcp 406') continue;
        const isOpenAi = /^\w+ \/v1\/(models|audio)\b/.test(name);
        const schema = isOpenAi ? 'OpenAiError' : status === '400' ? 'ValidationError' : 'ApiError';
        expect(response.content, where).toMatchObject({
          'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
        });
      }
    }
  });

  it('describes nullable fields as OpenAPI 3.1 requires', () => {
    expect(JSON.stringify(document)).not.toContain('"nullable"');
    expect(document.components?.schemas?.DiarizeRequest).toMatchObject({
      required: ['url'],
      properties: { numSpeakers: { type: ['integer', 'null'], minimum: 1 }, exclusive: { type: ['boolean', 'null'] } },
    });
  });

  it('has the job callback as a webhook with its headers', () => {
    const { parameters } = (document.webhooks as unknown as Webhooks).jobEnded.post;
    const headers = parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name);
    expect(headers).toEqual([
      'X-Request-Timestamp',
      'X-Signature',
      'X-Signature-Previous',
      'x-retry-num',
      'x-retry-reason',
    ]);
  });

  it('has defaults that match their schema, and all values of a choice', () => {
    const schemas = (document.components?.schemas ?? {}) as Record<string, { properties?: object }>;
    const fields = Object.values(schemas).flatMap(({ properties = {} }) => Object.entries(properties));
    const choices = fields.flatMap(([name, field]) => {
      const { default: value, enum: values } = field as { default?: unknown; enum?: unknown[] };
      return values ? [{ name, values, hasDefault: value === undefined || values.includes(value) }] : [];
    });
    expect(choices.filter(({ hasDefault }) => !hasDefault)).toEqual([]);
    expect(choices.find(({ name }) => name === 'sampleRate')?.values).toEqual([8000, 16000, 24000, 44100, 48000, null]);
  });

  it('describes the output as JSON, and as text in the other formats', () => {
    const responses: Record<string, { content?: object }> =
      document.paths?.['/v1/jobs/{jobId}/output']?.get?.responses ?? {};
    const types = Object.entries(responses[200]?.content ?? {}).map(([type, { schema }]) => [
      type,
      'anyOf' in schema ? 'union' : schema.type,
    ]);
    expect(types.filter(([, type]) => type !== 'string')).toEqual([['application/json', 'union']]);
    expect(types.length).toBeGreaterThan(3);
  });

  it('describes 401 by the address or the key, as its operation requires', () => {
    for (const { name, security, responses } of operations) {
      const words = (responses as Record<string, { description: string }>)[401]?.description;
      if (words !== undefined) expect(words, name).toMatch(security?.length === 0 ? /^The address/ : /key/);
    }
  });

  it('has the version that its caller passes', () => {
    expect(document.info.version).toBe('1.2.3');
  });
});
