import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService, text, UUID } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const fromPackage = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const get = (path: string, init?: RequestInit) => fetch(service.url + path, init);

describe('GET /openapi.json', () => {
  it('is valid public OpenAPI 3.1 with the version of the package and the requested origin', async () => {
    const response = await get('/openapi.json');
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('application/json');
    expect(response.headers.get('Cache-Control')).toMatch(/^public, max-age=\d+$/);
    expect(response.headers.get('X-Request-Id')).toMatch(UUID);
    const document = (await response.json()) as Record<string, unknown>;
    expect(document).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\./),
      info: { version: JSON.parse(fromPackage('package.json')).version },
      servers: [{ url: service.url }],
    });
    expect(await new Validator().validate(document)).toEqual({ valid: true });
  });

  it('describes accepted aliases of fields as deprecated', async () => {
    const { components } = (await (await get('/openapi.json')).json()) as {
      components: { schemas: Record<string, { properties: Record<string, { deprecated?: boolean }> }> };
    };
    const deprecated = ['DiarizeRequest', 'IdentifyRequest'].map((name) =>
      Object.entries(components.schemas[name].properties).flatMap(([field, schema]) =>
        schema.deprecated ? [field] : [],
      ),
    );
    expect(deprecated).toEqual([['turn_level_confidence', 'transcription_config'], ['turn_level_confidence']]);
  });

  it('describes the limit of a list as an integer', async () => {
    const { paths } = (await (await get('/openapi.json')).json()) as {
      paths: Record<string, { get: { parameters: { name: string; schema: object }[] } }>;
    };
    for (const path of ['/v1/jobs', '/v2/jobs']) {
      const limit = paths[path].get.parameters.find(({ name }) => name === 'limit');
      expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 100, default: 10 });
      expect(limit?.schema).not.toHaveProperty('pattern');
    }
  });

  it('describes recordings as binary', async () => {
    type Body = { content: Record<string, { schema?: object }> };
    const { paths } = (await (await get('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { requestBody: Body; responses: Record<string, Body> }>>;
    };
    const { 200: full, 206: partial } = paths['/v1/media/download/{ticket}'].get.responses;
    for (const { content } of [paths['/v1/media/upload/{ticket}'].put.requestBody, full, partial])
      expect(content).toEqual({ 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } });
  });

  it('names the origin of each request as its server', async () => {
    const { port } = new URL(service.url);
    const answers = await Promise.all(
      [service.url, `http://localhost:${port}`, service.url].map(async (origin) => {
        const { servers } = (await (await fetch(`${origin}/openapi.json`)).json()) as { servers: unknown };
        return servers;
      }),
    );
    expect(answers).toEqual([[{ url: service.url }], [{ url: `http://localhost:${port}` }], [{ url: service.url }]]);
  });

  it('describes only existing routes with methods that they accept', async () => {
    const { paths } = (await (await get('/openapi.json')).json()) as { paths: Record<string, object> };
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/v1/test', '/v1/diarize', '/v1/jobs/{jobId}']));
    for (const [path, item] of Object.entries(paths)) {
      const options = await service.call('OPTIONS', path.replace(/\{\w+\}/g, 'x'));
      const allowed = options.headers.get('Allow')?.split(', ') ?? [];
      const described = Object.keys(item).map((method) => method.toUpperCase());
      expect(allowed, path).toEqual(expect.arrayContaining(described));
    }
  });
});

/** Headers of HTTP, CORS, caches and proxies, which the document does not describe. */
const GENERAL_HEADERS = new RegExp(
  `^(${[
    'access-control-.*',
    'cache-control',
    'connection',
    'content-(length|type|encoding)',
    'date',
    'keep-alive',
    'transfer-encoding',
    'vary',
    'x-(content-type-options|accel-buffering)',
  ].join('|')})$`,
);

describe('the headers of answers', () => {
  type Documented = Record<string, Record<string, { responses: Record<string, { headers?: object }> }>>;
  let paths: Documented;
  let required: string[];
  let recording = '';
  const JOB = '11111111-1111-4111-8111-111111111111';
  beforeAll(async () => {
    const document = (await (await get('/openapi.json')).json()) as {
      paths: Documented;
      components: { headers: Record<string, { required?: boolean }> };
    };
    paths = document.paths;
    const described = Object.entries(document.components.headers);
    required = described.flatMap(([name, { required: isRequired }]) => (isRequired ? [name.toLowerCase()] : []));
    const media = { url: 'media://talks/monday' };
    const { body: upload } = await service.call('POST', '/v1/media/input', { body: media });
    await service.call('PUT', upload.url, { key: null, body: text('0123456789') });
    recording = (await service.call('POST', '/v1/media/output', { body: media })).body.url.slice(service.url.length);
    await storeJob(service, { id: JOB, status: 'succeeded', output: '{"diarization":[]}' });
  });

  const socket = '/v1/live/x/socket';
  const cases: [
    name: string,
    status: number,
    path: () => string,
    template: string,
    headers?: Record<string, string>,
  ][] = [
    ['a recording', 200, () => recording, '/v1/media/download/{ticket}'],
    ['a range of it', 206, () => recording, '/v1/media/download/{ticket}', { Range: 'bytes=2-3' }],
    ['a range after its end', 416, () => recording, '/v1/media/download/{ticket}', { Range: 'bytes=10-' }],
    [
      'a recording that the client has cached',
      304,
      () => recording,
      '/v1/media/download/{ticket}',
      { 'If-None-Match': '*' },
    ],
    ['a forged address', 401, () => '/v1/media/download/x', '/v1/media/download/{ticket}'],
    ['a job', 200, () => `/v1/jobs/${JOB}`, '/v1/jobs/{jobId}'],
    ['an unknown job', 404, () => '/v1/jobs/x', '/v1/jobs/{jobId}'],
    ['a bad key', 401, () => `/v1/jobs/${JOB}`, '/v1/jobs/{jobId}', { Authorization: 'Bearer x' }],
    ['an output', 200, () => `/v1/jobs/${JOB}/output`, '/v1/jobs/{jobId}/output'],
    ['an output as text', 200, () => `/v1/jobs/${JOB}/output?format=srt`, '/v1/jobs/{jobId}/output'],
    ['events', 200, () => `/v1/jobs/${JOB}/events`, '/v1/jobs/{jobId}/events'],
    ['no upgrade', 426, () => socket, '/v1/live/{id}/socket'],
  ];
  it.each(cases)('of %s (%i) are those of the document', async (_, status, path, template, headers) => {
    const key = { Authorization: `Bearer ${service.main.token}` };
    const answer = await get(path(), { headers: { ...key, ...headers } });
    await answer.arrayBuffer();
    expect(answer.status).toBe(status);
    const documented = Object.keys(paths[template].get.responses[status].headers ?? {}).map((name) =>
      name.toLowerCase(),
    );
    const carried: string[] = [];
    answer.headers.forEach((_, name) => {
      if (!GENERAL_HEADERS.test(name)) carried.push(name);
    });
    expect(documented).toEqual(expect.arrayContaining(carried));
    expect(carried).toEqual(expect.arrayContaining(documented.filter((name) => required.includes(name))));
  });
});

describe('the pages', () => {
  it.each(['/', '/docs', '/docs/'])('GET %s is a page that loads only files of this service', async (path) => {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('Content-Security-Policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    // The player loads recordings from other hosts.
    expect(policy.replace(/media-src [^;]*/, '')).not.toMatch(/unsafe|https?:|\*/);
    const html = await response.text();
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=|\son\w+=/);
    const files = [...html.matchAll(/<(?:script|link)[^>]*? (?:src|href)="([^"]+)"/g)].map(([, address]) => address);
    for (const file of files.filter((address) => !address?.startsWith('data:'))) {
      expect(file, 'is a file of this service').toMatch(/^\/(docs|playground)\//);
      const answer = await get(file);
      expect(answer.status, file).toBe(200);
      expect((await answer.arrayBuffer()).byteLength, file).toBeGreaterThan(100);
      expect(answer.headers.get('Content-Type'), file).toMatch(/^text\/(css|javascript)/);
    }
  });

  it('link from the root to the reference and to the document', async () => {
    const html = await (await get('/')).text();
    expect(html).toContain('href="/docs"');
    expect(html).toContain('href="/openapi.json"');
  });

  it('serves the reference with permanent caching', async () => {
    const html = await (await get('/docs')).text();
    const [, folder, version] = /data-files="(\/docs\/scalar-([\d.]+))"/.exec(html)!;
    const installed = JSON.parse(fromPackage('node_modules/@scalar/fastify-api-reference/package.json'));
    expect(version).toBe((installed as { version: string }).version);
    for (const [name, type] of [
      ['reference.js', 'text/javascript'],
      ['reference.css', 'text/css'],
    ]) {
      const response = await get(`${folder}/${name}`);
      expect(response.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
      expect(response.headers.get('Content-Type')).toBe(`${type}; charset=utf-8`);
      expect((await response.text()).length).toBeGreaterThan(100_000);
    }
    expect((await service.call('GET', '/docs/scalar-0.0.0/reference.js', { key: null })).status).toBe(404);
  });

  it('answers HEAD like GET but without a body, and 405 for other methods', async () => {
    for (const path of ['/', '/docs', '/openapi.json']) {
      const head = await get(path, { method: 'HEAD' });
      expect(head.status, path).toBe(200);
      expect(await head.text()).toBe('');
      expect(head.headers.get('Content-Type')).toBe((await get(path)).headers.get('Content-Type'));
      const post = await service.call('POST', path, { key: null, body: {} });
      expect(post).toMatchObject({ status: 405, body: { requestId: expect.stringMatching(UUID) } });
      expect(post.headers.get('Allow')).toBe('GET, HEAD, OPTIONS');
    }
  });

  it('answers 404 in JSON for other addresses', async () => {
    for (const path of ['/docs/nothing', '/openapi.yaml', '/index.html']) {
      expect(await service.call('GET', path, { key: null })).toMatchObject({
        status: 404,
        body: { message: 'Not found.' },
      });
    }
  });
});
