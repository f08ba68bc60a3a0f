import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from './service.ts';

let service: ContractService;
let html: string;
beforeAll(async () => {
  service = await startContractService();
  html = await (await fetch(`${service.url}/`)).text();
});
afterAll(() => service?.stop());

const file = (name: string) => fetch(`${service.url}/playground/${name}`);
const sources = ['main', 'workbench', 'panels', 'sheet'].map((name) =>
  readFileSync(new URL(`../../public/playground/${name}.ts`, import.meta.url), 'utf8'),
);
const idsOf = (page: string) => [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

describe('the playground (GET /)', () => {
  it('has a Content-Security-Policy that allows only this service and media', async () => {
    const { headers } = await fetch(`${service.url}/`);
    expect(headers.get('Content-Security-Policy')?.split('; ').sort()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "media-src 'self' blob: https: http:",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(headers.get('Referrer-Policy')).toBe('no-referrer');
    expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
    const { headers: docs } = await fetch(`${service.url}/docs`);
    expect(docs.get('Content-Security-Policy')).not.toContain('media-src');
  });

  it('shows its version', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(html).toContain(`<small>${version}</small>`);
    expect(html).not.toContain('{{');
  });

  it.each(['playground.js', 'microphone-frames.js'])(
    '%s is complete JavaScript and names no other host',
    async (name) => {
      const response = await file(name);
      expect(response.headers.get('Content-Type')).toBe('text/javascript; charset=utf-8');
      expect(response.headers.get('Cache-Control')).toMatch(/^public, max-age=\d+$/);
      const script = await response.text();
      await expect(transform(script, { loader: 'js', format: 'esm' })).resolves.toMatchObject({ warnings: [] });
      // An example address, and XML namespaces of ELAN files.
      const allowed =
        /https:\/\/example\.com\/|http:\/\/www\.(w3\.org\/2001\/XMLSchema-instance|mpi\.nl\/tools\/elan\/)/g;
      expect(script.replaceAll(allowed, '')).not.toMatch(/https?:\/\/\w|\beval\(|new Function|innerHTML/);
    },
  );

  it('has each element that its script uses once, and a label for each field', () => {
    const ids = idsOf(html);
    expect(new Set(ids).size).toBe(ids.length);
    const usedIds = sources.flatMap((source) => [...source.matchAll(/find\('([\w-]+)'/g)].map(([, id]) => id));
    expect(usedIds.length).toBeGreaterThan(10);
    expect(ids).toEqual(expect.arrayContaining([...usedIds, 'of-file', 'of-address', 'of-microphone', 'result-title']));
    const fields = [...html.matchAll(/<(?:input|select)(?![^>]*type="radio")[^>]*id="([^"]+)"/g)].map(([, id]) => id);
    expect(fields.sort()).toEqual([
      'address',
      'file',
      'follow',
      'format',
      'key',
      'model',
      'recording',
      'speakers',
      'speed',
      'transcribe',
    ]);
    for (const id of fields) expect(html, id).toMatch(new RegExp(`<label for="${id}"|<label[^>]*><input id="${id}"`));
    for (const [, targets] of html.matchAll(/aria-(?:describedby|labelledby)="([^"]+)"/g))
      expect(ids).toContain(targets);
  });

  it('loads its first view with less than 60 KiB', async () => {
    const parts = [
      html,
      ...(await Promise.all(['playground.js', 'playground.css'].map(async (n) => (await file(n)).text()))),
    ];
    const bytes = parts.reduce((sum, part) => sum + gzipSync(part).length, 0);
    expect(bytes).toBeLessThan(60 * 1024);
  });

  it('serves the sample recording', async () => {
    const response = await file('sample.mp3');
    expect(response.headers.get('Content-Type')).toBe('audio/mpeg');
    const sample = readFileSync(new URL('../fixtures/conversation.mp3', import.meta.url));
    expect(Buffer.from(await response.arrayBuffer()).equals(sample)).toBe(true);
  });

  it('answers 404 for files that it does not have', async () => {
    for (const name of ['', 'index.html', 'main.ts', '..%2fpackage.json']) expect((await file(name)).status).toBe(404);
  });

  it.each(['light', 'dark'])('has sufficient contrast of text and colours in the %s scheme', async (scheme) => {
    const colours = coloursOf(await (await file('playground.css')).text(), scheme === 'dark');
    for (const name of ['text', 'quiet', 'link', 'problem']) {
      expect(contrast(colours.get(name)!, colours.get('page')!), name).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(colours.get('on-button')!, colours.get('button')!)).toBeGreaterThanOrEqual(4.5);
    for (const name of [...Array.from({ length: 8 }, (_, i) => `speaker-${i}`), 'line']) {
      expect(contrast(colours.get(name)!, colours.get('page')!), name).toBeGreaterThanOrEqual(3);
      if (name !== 'line') expect(contrast(colours.get(name)!, colours.get('faint')!), name).toBeGreaterThanOrEqual(3);
    }
  });
});

/** The colours of the style sheet; with `isDark` those of the dark scheme override the light ones. */
function coloursOf(css: string, isDark: boolean): Map<string, string> {
  const [light, dark] = css.split('@media (prefers-color-scheme: dark)');
  const read = (text: string) =>
    [...text.matchAll(/--([\w-]+): (#[0-9a-f]{3,6});/g)].map(([, name, colour]) => [name, colour] as const);
  return new Map([...read(light), ...(isDark ? read(dark) : [])]);
}

/** Contrast ratio of WCAG 2. */
function contrast(one: string, two: string): number {
  const [lighter, darker] = [luminance(one), luminance(two)].sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(colour: string): number {
  const digits =
    colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit) : colour.slice(1).match(/../g)!;
  const [red, green, blue] = digits.map((pair) => {
    const value = Number.parseInt(pair, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
