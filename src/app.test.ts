import { expect, it } from 'vitest';
import { createApp, ENDPOINTS } from './app.ts';

const app = createApp(() => {
  throw new Error('no service is called for the document');
});

it('describes every endpoint as OpenAPI 3.1', () => {
  const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'rollcall', version: '1' } });
  const described = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.keys(methods ?? {}).map((method) => `${method} ${path}`),
  );
  expect(described.sort()).toEqual(ENDPOINTS.map(({ route }) => `${route.method} ${route.path}`).sort());
  const { schemas = {}, securitySchemes = {} } = document.components ?? {};
  expect(Object.keys(schemas)).toEqual(expect.arrayContaining(['DiarizeRequest', 'JobResult', 'ApiError']));
  expect(schemas.DiarizeRequest).toMatchObject({ required: ['url'] });
  expect(securitySchemes.bearer).toMatchObject({ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' });
  expect(document.paths?.['/v1/media/upload/{ticket}']?.put?.security).toEqual([]);
  expect(document.paths?.['/v1/media/upload/{ticket}']?.put?.responses).not.toHaveProperty('429');
  expect(document.paths?.['/v1/test']?.get?.responses).toHaveProperty('429');
  expect(document.paths?.['/v1/diarize']?.post?.security).toEqual([{ bearer: [] }]);
});
