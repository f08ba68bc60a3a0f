// Bundles the playground's scripts for the browser. wrangler runs this before it bundles the Worker (`[build]` of wrangler.toml).
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = join(dirname(fileURLToPath(import.meta.url)), 'playground');
const target = join(source, '..', '..', '.wrangler', 'playground');

const { outputFiles } = await build({
  entryPoints: {
    playground: join(source, 'main.ts'),
    'microphone-frames': join(source, 'microphone-frames.ts'),
  },
  outdir: target,
  bundle: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  minify: true,
  legalComments: 'none',
});
mkdirSync(target, { recursive: true });
for (const { path, text } of outputFiles) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  // Another build may be reading: it must never see half a file.
  const scratch = `${path}.${process.pid}.tmp`;
  writeFileSync(scratch, text);
  renameSync(scratch, path);
}
