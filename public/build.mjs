// Builds the pages that the Worker serves. wrangler runs this script before it bundles the Worker
// (`[build]` in wrangler.toml).
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';

const source = dirname(fileURLToPath(import.meta.url));
const root = join(source, '..');
const target = join(root, '.wrangler', 'playground');

const { outputFiles } = await build({
  entryPoints: {
    playground: join(source, 'playground', 'main.ts'),
    'microphone-frames': join(source, 'playground', 'microphone-frames.ts'),
    docs: join(source, 'docs', 'main.ts'),
  },
  outdir: target,
  bundle: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  minify: true,
  legalComments: 'none',
});

/**
 * Extracts script and styles of Scalar's API reference from its plugin for Fastify, which contains the script as a
 * string; Scalar's main package has 284 dependencies. The script begins with a statement that adds the styles to the
 * page. The page's content security policy forbids that, so the styles become a separate file.
 */
function reference() {
  const plugin = join(root, 'node_modules', '@scalar', 'fastify-api-reference', 'dist', 'index.js');
  const literal = /^var standalone_default = (".*");$/m.exec(readFileSync(plugin, 'utf8'))?.[1];
  if (literal === undefined) {
    throw new Error('@scalar/fastify-api-reference does not contain its script where it is expected');
  }
  const script = runInNewContext(literal);
  const end = script.indexOf('})();') + '})();'.length;
  let styles = '';
  const node = { setAttribute() {}, appendChild() {}, querySelector() {} };
  const document = { head: node, createElement: () => node, createTextNode: (text) => (styles = text) };
  runInNewContext(script.slice(0, end), { document });
  if (styles === '') throw new Error('the script of @scalar/fastify-api-reference does not begin with its styles');
  return { script: script.slice(end), styles };
}

const { script, styles } = reference();
const files = [
  ...outputFiles.map(({ path, contents }) => ({ path, bytes: Buffer.from(contents) })),
  { path: join(target, 'reference.js'), bytes: Buffer.from(script) },
  { path: join(target, 'reference.css'), bytes: Buffer.from(styles) },
  { path: join(target, 'sample.mp3'), bytes: readFileSync(join(root, 'test', 'fixtures', 'conversation.mp3')) },
];
mkdirSync(target, { recursive: true });
for (const { path, bytes } of files) {
  if (existsSync(path) && readFileSync(path).equals(bytes)) continue;
  // Replaced atomically, because another build may be reading the file.
  const scratch = `${path}.${process.pid}.tmp`;
  writeFileSync(scratch, bytes);
  renameSync(scratch, path);
}
