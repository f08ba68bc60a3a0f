import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService, UUID } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const fromPackage = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const get = (path: string, init?: RequestInit) => fetch(service.url + path, init);

describe('GET /openapi.json', () => {
  it('is valid OpenAPI 3.1, open to everyone, with the version of the package and the address that was asked', async () => {
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

  it('names the origin of every request anew', async () => {
    const { port } = new URL(service.url);
    const answers = await Promise.all(
      [service.url, `http://localhost:${port}`, service.url].map(async (origin) => {
        const { servers } = (await (await fetch(`${origin}/openapi.json`)).json()) as { servers: unknown };
        return servers;
      }),
    );
    expect(answers).toEqual([[{ url: service.url }], [{ url: `http://localhost:${port}` }], [{ url: service.url }]]);
  });

  it('names only addresses that exist, with methods that they take', async () => {
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

describe('the pages', () => {
  it.each(['/', '/docs', '/docs/'])('GET %s is a page that loads nothing from elsewhere', async (path) => {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('Content-Security-Policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    const html = await response.text();
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=|\son\w+=/);
    const files = [...html.matchAll(/<(?:script|link)[^>]*? (?:src|href)="([^"]+)"/g)].map(([, address]) => address);
    for (const file of files.filter((address) => !address?.startsWith('data:'))) {
      expect(file, 'on this service').toMatch(/^\/(docs|playground)\//);
      const answer = await get(file);
      expect(answer.status, file).toBe(200);
      expect((await answer.arrayBuffer()).byteLength, file).toBeGreaterThan(100);
      expect(answer.headers.get('Content-Type'), file).toMatch(/^text\/(css|javascript)/);
    }
  });

  it('the root links to the reference and to the document', async () => {
    const html = await (await get('/')).text();
    expect(html).toContain('href="/docs"');
    expect(html).toContain('href="/openapi.json"');
  });

  it('serves the files of swagger-ui unchanged, with their licences, to be cached for good', async () => {
    const html = await (await get('/docs')).text();
    const script = /src="(\/docs\/swagger-ui-([\d.]+)\/swagger-ui\.js)"/.exec(html)!;
    const installed = JSON.parse(fromPackage('node_modules/swagger-ui-dist/package.json')) as { version: string };
    expect(script[2]).toBe(installed.version);
    const folder = script[1].slice(0, script[1].lastIndexOf('/'));
    const names = { 'swagger-ui.js': 'swagger-ui-bundle.js', 'swagger-ui.css': 'swagger-ui.css' };
    const licences = 'swagger-ui-bundle.js.LICENSE.txt';
    for (const [name, source] of Object.entries({ ...names, [licences]: licences })) {
      const response = await get(`${folder}/${name}`);
      expect(response.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
      expect(await response.text()).toBe(fromPackage(`node_modules/swagger-ui-dist/${source}`));
    }
    expect((await service.call('GET', `${folder}/constructor`, { key: null })).status).toBe(404);
    expect((await service.call('GET', '/docs/swagger-ui-0.0.0/swagger-ui.js', { key: null })).status).toBe(404);
  });

  it('answers HEAD like GET without a body, and other methods with 405', async () => {
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

  it('leaves other addresses at 404 in JSON', async () => {
    for (const path of ['/docs/nothing', '/openapi.yaml', '/index.html']) {
      expect(await service.call('GET', path, { key: null })).toMatchObject({
        status: 404,
        body: { message: 'Not found.' },
      });
    }
  });
});
