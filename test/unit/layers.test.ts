import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../helpers/local-process.ts';

/** What each layer may import besides itself and packages: the table of docs/architecture.md. */
const SEES: Readonly<Record<string, readonly string[]>> = {
  'src/audio': [],
  'src/formats': [],
  'src/diarization': ['src/audio'],
  'src/voiceprint': ['src/audio', 'src/diarization'],
  'src/live': ['src/diarization', 'src/voiceprint'],
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
  public: ['client/format', 'client/library', 'client/live', 'client/sdk', 'src/contract'],
  'client/sdk': ['src/contract'],
  'client/live': ['client/sdk'],
  'client/library': ['client/live', 'client/sdk'],
  'client/format': ['client/sdk', 'src/formats'],
};

/** `src/jobs` of `src/jobs/live-streams.ts`, `src/app.ts` of itself. */
function layerOf(path: string): string {
  const [first, second] = path.split('/') as [string, string?];
  return (first === 'src' || first === 'client') && second !== undefined ? `${first}/${second}` : first;
}

/** Paths, from the root, of the files that a module imports by a relative specifier. */
function importsOf(path: string): string[] {
  const source = readFileSync(join(root, path), 'utf8');
  const specifiers = [...source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map(([, name]) => name);
  return specifiers.map((name) => normalize(join(dirname(path), name)));
}

it('every module imports only what its layer may see', () => {
  const modules = ['src', 'durable-objects', 'public', 'client']
    .flatMap((top) =>
      readdirSync(join(root, top), { recursive: true, encoding: 'utf8' }).map((path) => join(top, path)),
    )
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.endsWith('.d.ts'));
  expect(modules.length).toBeGreaterThan(200);
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const path of modules) {
    const layer = layerOf(path);
    const allowed = SEES[layer];
    if (allowed === undefined && !layer.startsWith('client')) faults.push(`${path}: layer ${layer} is unknown`);
    if (allowed === undefined) continue;
    for (const target of importsOf(path).map(layerOf)) {
      if (target === layer) continue;
      seen.add(`${layer} → ${target}`);
      if (!allowed.includes(target)) faults.push(`${path} imports ${target}`);
    }
  }
  expect(faults).toEqual([]);
  // A permission that nobody uses is one too many.
  const unused = Object.entries(SEES).flatMap(([layer, targets]) =>
    targets.map((target) => `${layer} → ${target}`).filter((edge) => !seen.has(edge)),
  );
  expect(unused).toEqual([]);
});
