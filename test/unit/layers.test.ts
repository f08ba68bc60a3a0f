import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../helpers/local-process.ts';

/** Layers that each layer may import besides itself: the table of docs/architecture.md. */
const ALLOWED_LAYERS: Readonly<Record<string, readonly string[]>> = {
  'src/audio': [],
  'src/formats': [],
  'src/diarization': ['src/audio'],
  'src/voiceprint': ['src/audio', 'src/diarization'],
  'src/live': ['src/audio', 'src/diarization', 'src/voiceprint'],
  'src/ingest': ['src/audio'],
  'src/transcription': [],
  'src/contract': [],
  'src/jobs': [
    'src/contract',
    'src/audio',
    'src/ingest',
    'src/diarization',
    'src/voiceprint',
    'src/live',
    'src/transcription',
    'src/formats',
  ],
  'src/middleware': ['src/contract', 'src/jobs'],
  'src/routes': ['src/contract', 'src/jobs', 'src/middleware'],
  'src/platform': [
    'src/jobs',
    'src/contract',
    'src/audio',
    'src/diarization',
    'src/voiceprint',
    'src/transcription',
    'models',
    'wasm',
    '.wrangler',
  ],
  'src/app.ts': ['src/contract', 'src/jobs', 'src/middleware', 'src/routes', 'package.json'],
  'src/env.ts': ['src/contract', 'src/jobs', 'src/platform'],
  'src/services-common.ts': ['src/env.ts', 'src/jobs', 'src/platform'],
  'src/services-api.ts': ['src/contract', 'src/env.ts', 'src/jobs', 'src/platform', 'src/services-common.ts'],
  'src/services-inference.ts': ['src/audio', 'src/jobs', 'src/platform', 'wasm'],
  'src/services-jobs.ts': [
    'src/env.ts',
    'src/jobs',
    'src/platform',
    'src/services-common.ts',
    'src/services-inference.ts',
    'wasm',
  ],
  'src/services-live.ts': [
    'src/audio',
    'src/env.ts',
    'src/jobs',
    'src/live',
    'src/platform',
    'src/services-inference.ts',
  ],
  'src/docs-assets.ts': ['.wrangler', 'package.json', 'public', 'src/routes'],
  'durable-objects': ['src/env.ts', 'src/jobs', 'src/platform', 'src/services-jobs.ts', 'src/services-live.ts'],
  'src/worker.ts': [
    'durable-objects',
    'src/app.ts',
    'src/docs-assets.ts',
    'src/env.ts',
    'src/jobs',
    'src/platform',
    'src/services-api.ts',
    'src/services-common.ts',
  ],
  'src/jobs-worker.ts': ['durable-objects', 'src/env.ts', 'src/jobs', 'src/platform', 'src/services-jobs.ts'],
  'src/live-worker.ts': ['durable-objects'],
  public: ['client/format', 'client/library', 'client/live', 'client/sdk', 'src/contract/output-formats.ts'],
  'client/sdk': ['src/contract'],
  'client/live': ['client/sdk'],
  'client/library': ['client/live', 'client/sdk'],
  'client/format': ['client/sdk', 'src/formats'],
};

/** Packages that each layer of the service may import; unlisted layers import none. */
const ALLOWED_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'src/app.ts': ['@hono/zod-openapi', 'hono'],
  'src/contract': ['@hono/zod-openapi', 'zod'],
  'src/env.ts': ['zod'],
  'src/jobs': ['zod'],
  'src/middleware': ['hono', 'multipasta'],
  'src/platform': ['aws4fetch', 'itty-durable', 'jose', 'onnxruntime-web', 'zod'],
  'src/routes': ['@hono/zod-openapi', '@modelcontextprotocol/sdk', 'hono'],
  'durable-objects': ['cloudflare:workers', 'itty-durable'],
};

/** `src/jobs` of `src/jobs/dispatch.ts`, `src/app.ts` of itself. */
function layerOf(path: string): string {
  const [first, second] = path.split('/') as [string, string?];
  return (first === 'src' || first === 'client') && second !== undefined ? `${first}/${second}` : first;
}

/** `hono` of `hono/cors`, `@hono/zod-openapi` of itself. */
const packageOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');

interface Import {
  readonly specifier: string;
  /** Path from the root; undefined for a package. */
  readonly path?: string;
  readonly isType: boolean;
}

/** Imports and re-exports of a module, types included. */
function importsOf(path: string): Import[] {
  const source = readFileSync(join(root, path), 'utf8');
  const statements = source.matchAll(/^(?:import\b|export (?:type )?[{*])[^;'"]*'([^']+)'/gm);
  const calls = source.matchAll(/\bimport\('([^']+)'\)/g);
  return [...statements, ...calls].map(([statement, specifier]) => ({
    specifier,
    path: specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : undefined,
    isType: /^(?:import|export) type\b/.test(statement),
  }));
}

const MODULES = ['src', 'durable-objects', 'public', 'client']
  .flatMap((top) => readdirSync(join(root, top), { recursive: true, encoding: 'utf8' }).map((path) => join(top, path)))
  .filter((path) => path.endsWith('.ts') && !/\.(?:test|d)\.ts$/.test(path) && !path.includes('node_modules'));
const IMPORTS: ReadonlyMap<string, readonly Import[]> = new Map(MODULES.map((path) => [path, importsOf(path)]));

/** Permissions without a use, which must be removed. */
const unused = (table: typeof ALLOWED_LAYERS, used: ReadonlySet<string>): string[] =>
  Object.entries(table)
    .flatMap(([layer, names]) => names.map((name) => `${layer} → ${name}`))
    .filter((edge) => !used.has(edge));

it('every module imports only layers that its own layer may import', () => {
  expect(MODULES.length).toBeGreaterThan(200);
  const used = new Set<string>();
  const faults: string[] = [];
  for (const [path, imports] of IMPORTS) {
    const layer = layerOf(path);
    const allowed = ALLOWED_LAYERS[layer];
    if (allowed === undefined && !layer.startsWith('client')) faults.push(`${path}: layer ${layer} is unknown`);
    if (allowed === undefined) continue;
    for (const { path: target } of imports) {
      if (target === undefined || layerOf(target) === layer) continue;
      const permission = [target, layerOf(target)].find((name) => allowed.includes(name));
      if (permission === undefined) faults.push(`${path} imports ${target}`);
      else used.add(`${layer} → ${permission}`);
    }
  }
  expect(faults).toEqual([]);
  expect(unused(ALLOWED_LAYERS, used)).toEqual([]);
});

it('every module of the service imports only the packages of its layer', () => {
  const used = new Set<string>();
  const faults: string[] = [];
  for (const [path, imports] of IMPORTS) {
    const layer = layerOf(path);
    if (layer.startsWith('client') || layer === 'public') continue;
    for (const { specifier, path: target } of imports) {
      if (target !== undefined) continue;
      const name = packageOf(specifier);
      used.add(`${layer} → ${name}`);
      if (!ALLOWED_PACKAGES[layer]?.includes(name)) faults.push(`${path} imports ${specifier}`);
    }
  }
  expect(faults).toEqual([]);
  expect(unused(ALLOWED_PACKAGES, used)).toEqual([]);
});

it('modules of the service have no import cycles, types included', () => {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, chain: readonly string[]): void => {
    const from = chain.indexOf(path);
    if (from >= 0) cycles.push([...chain.slice(from), path].join(' → '));
    if (from >= 0 || done.has(path) || path.startsWith('client/')) return;
    for (const { path: target } of IMPORTS.get(path) ?? []) if (target !== undefined) visit(target, [...chain, path]);
    done.add(path);
  };
  for (const path of MODULES) visit(path, []);
  expect(cycles).toEqual([]);
});

it('modules for browsers import no Node modules', () => {
  const seen = new Set<string>();
  const faults: string[] = [];
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { specifier, path: target, isType } of IMPORTS.get(path) ?? []) {
      if (isType) continue;
      if (specifier.startsWith('node:')) faults.push(`${path} imports ${specifier}`);
      if (target !== undefined) visit(target);
    }
  };
  for (const path of MODULES) if (path.startsWith('public/')) visit(path);
  expect(faults).toEqual([]);
});
