// Builds the package `rollcall-client` into client/dist: ES modules without a dependency, and their types.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const library = dirname(fileURLToPath(import.meta.url));
const root = resolve(library, '../..');
const target = join(library, '..', 'dist');
const require = createRequire(import.meta.url);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Makes the entry for Node import `index.js`, so that both entries have the same classes. */
const indexModule = {
  name: 'index',
  setup: ({ onResolve }) => onResolve({ filter: /^\.\/index\.ts$/ }, () => ({ path: './index.js', external: true })),
};

mkdirSync(join(root, '.wrangler'), { recursive: true });
const scratch = mkdtempSync(join(root, '.wrangler', 'client-'));
try {
  await buildModules();
  buildTypes(await contractTypes());
  rmSync(target, { recursive: true, force: true });
  renameSync(scratch, target);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function buildModules() {
  const common = {
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    outdir: scratch,
    logLevel: 'warning',
  };
  const entries = { index: 'client/library/index.ts', live: 'client/live/index.ts' };
  await build({ ...common, entryPoints: entries, splitting: true, platform: 'neutral' });
  await build({
    ...common,
    entryPoints: { node: 'client/library/node.ts' },
    platform: 'node',
    // `ws` is a CommonJS module that requires two optional ones.
    banner: { js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);" },
    external: ['bufferutil', 'utf-8-validate'],
    plugins: [indexModule],
  });
  cpSync(join(dirname(require.resolve('ws/package.json')), 'LICENSE'), join(scratch, 'ws.LICENSE.txt'));
}

/** Writes the library's declarations, with `contract.d.ts` instead of the contract's sources. */
function buildTypes(contract) {
  const types = join(scratch, 'types');
  const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
  execFileSync(process.execPath, [tsc, '-p', join(library, 'tsconfig.build.json'), '--outDir', types], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  for (const folder of ['library', 'live', 'sdk']) {
    mkdirSync(join(scratch, folder));
    for (const name of readdirSync(join(types, 'client', folder))) {
      const text = readFileSync(join(types, 'client', folder, name), 'utf8')
        .replace(/(['"])(?:\.\.\/)+src\/contract\/\w+\.ts\1/g, "'../contract.js'")
        .replace(/(['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2');
      writeFileSync(join(scratch, folder, name), text);
    }
  }
  rmSync(types, { recursive: true });
  writeFileSync(join(scratch, 'contract.d.ts'), contract);
}

/** Writes the schemas of the contract as TypeScript, so that the package does not need zod. */
async function contractTypes() {
  const entry = `
    export { z } from 'zod';
    export * from './src/contract/jobs.ts';
    export * from './src/contract/outputs.ts';
    export * from './src/contract/account.ts';`;
  const bundle = join(scratch, 'contract.mjs');
  await build({
    stdin: { contents: entry, resolveDir: root, loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    outfile: bundle,
  });
  const contract = await import(pathToFileURL(bundle).href);
  rmSync(bundle);
  const turn = contract.diarizeOutputSchema.shape.exclusiveDiarization.unwrap().element;
  const named = {
    Turn: turn,
    JobCreated: contract.jobCreatedSchema,
    JobResult: contract.jobResultSchema,
    JobList: contract.jobListSchema,
    DiarizeOutput: contract.diarizeOutputSchema,
    IdentifyOutput: contract.identifyOutputSchema,
    VoiceprintOutput: contract.voiceprintOutputSchema,
    ErrorOutput: contract.errorOutputSchema,
    Usage: contract.usageSchema,
  };
  const lines = Object.entries(named).map(([name, schema]) => {
    const json = contract.z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
    return `export type ${name} = ${typeOf(json)};\n`;
  });
  return `// Answers of rollcall ${version}, generated from its contract.\n${lines.join('')}`;
}

function typeOf(schema) {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ');
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return variants.map((variant) => `(${typeOf(variant)})`).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array':
      return `(${typeOf(schema.items)})[]`;
    case 'object':
      return objectType(schema);
    default:
      throw new Error(`No type for ${JSON.stringify(schema)}`);
  }
}

function objectType({ properties, required = [], additionalProperties }) {
  if (!properties) return `Record<string, ${typeOf(additionalProperties)}>`;
  const members = Object.entries(properties).map(([name, schema]) => {
    const comment = schema.description ? `/** ${schema.description} */ ` : '';
    return `${comment}${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`;
  });
  return `{ ${members.join('; ')} }`;
}
