import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { build } from 'esbuild';
import { bundleWorker } from '../../client/local/bundle.ts';
import { Miniflare, type MiniflareOptions } from '../../client/local/miniflare.ts';
import { bundleCacheDir, projectDir } from '../../client/local/paths.ts';
import { migrate } from './database.ts';

interface WasmModule {
  readonly type: 'CompiledWasm';
  readonly path: string;
  readonly contents: Uint8Array<ArrayBuffer>;
}

/**
 * A Worker of `test/workers` in workerd; the caller disposes of it.
 *
 * @param bindings Miniflare's options for them
 * @param modules what the Worker imports by the same file names
 */
export async function startTestWorker(
  name: string,
  bindings: Partial<MiniflareOptions> = {},
  modules: readonly WasmModule[] = [],
): Promise<Miniflare> {
  const bundle = await build({
    entryPoints: [join(projectDir, 'test/workers', `${name}.worker.ts`)],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['cloudflare:*'],
    write: false,
    plugins: [
      {
        name: 'wasm-stays-a-module',
        setup: (hooks) =>
          hooks.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({
            path: `./${path.split('/').pop()}`,
            external: true,
          })),
      },
    ],
  });
  const entry = { type: 'ESModule', path: 'worker.mjs', contents: bundle.outputFiles[0].text };
  const options = { cf: false, compatibilityDate: compatibilityDate(), ...bindings, modules: [entry, ...modules] };
  const workerd = new Miniflare(options as MiniflareOptions);
  await workerd.ready;
  return workerd;
}

/** That of the service: what storage and streams do follows from it. */
function compatibilityDate(): string {
  const config = readFileSync(join(projectDir, 'wrangler.toml'), 'utf8');
  return /^compatibility_date = "(.+)"$/m.exec(config)![1]!;
}

/**
 * The service's own Worker in workerd, with empty storage in memory and nobody behind its queues; the caller stops it.
 *
 * @param front part of an ES module; what it exports takes the place of what the Worker, `./worker.js`, exports by the same name: to look into its objects
 */
export async function startWorker(front = '') {
  const worker = await bundleWorker(projectDir, bundleCacheDir(projectDir));
  const contents = `export * from './worker.js'; export { default } from './worker.js'; ${front}`;
  const entry = { type: 'ESModule', path: join(String(worker.rootPath), 'front.mjs'), contents };
  const options = {
    ...worker,
    cf: false,
    modules: [entry, ...(worker.modules as object[])],
    bindings: { ...worker.bindings, SIGNING_KEY: Buffer.alloc(32).toString('base64') },
    queueConsumers: {},
    // What the Worker logs is not what a test run is read for.
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => void [stdout.resume(), stderr.resume()],
  };
  const workerd = new Miniflare(options as unknown as MiniflareOptions);
  await workerd.ready;
  // Miniflare speaks of the experimental variant of these types.
  const db = (await workerd.getD1Database('DB')) as unknown as D1Database;
  const bucket = (await workerd.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  await migrate(db);
  return {
    db,
    bucket,
    objects: async (binding: string) =>
      (await workerd.getDurableObjectNamespace(binding)) as unknown as DurableObjectNamespace,
    stop: () => workerd.dispose(),
  };
}
