import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { build } from 'esbuild';
import { bundleWorker } from '../../client/local/bundle.ts';
import { Miniflare, type MiniflareOptions } from '../../client/local/miniflare.ts';
import { bundleCacheDir, projectDir } from '../../client/local/paths.ts';
import { seedModels } from '../../client/local/seed.ts';
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

const HANDSHAKE = { Upgrade: 'websocket' };

interface WorkerChanges {
  /** Part of an ES module; what it exports takes the place of what the Worker, `./worker.js`, exports by the same name: to look into its objects. */
  readonly front?: string;
  /** The model pack that the Worker is built with. */
  readonly pack?: string;
  /** The models of the default pack are in the bucket. */
  readonly hasModels?: boolean;
  /** Variables of the Worker. */
  readonly vars?: Readonly<Record<string, string>>;
}

/** The service's own Worker in workerd, with empty storage in memory and nobody behind its queues; the caller stops it. */
export async function startWorker({ front = '', pack = 'default', hasModels = false, vars = {} }: WorkerChanges = {}) {
  const worker = await bundleWorker(projectDir, bundleCacheDir(projectDir));
  const folder = String(worker.rootPath);
  const [main, ...others] = worker.modules as { readonly type: string; readonly path: string }[];
  const contents = `export * from './worker.js'; export { default } from './worker.js'; ${front}`;
  const signingKey = Buffer.alloc(32).toString('base64');
  const options = {
    ...worker,
    cf: false,
    modules: [
      { type: 'ESModule', path: join(folder, 'front.mjs'), contents },
      { ...main!, contents: builtWith(pack, readFileSync(main!.path, 'utf8')) },
      ...others,
    ],
    bindings: { ...worker.bindings, SIGNING_KEY: signingKey, ...vars },
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
  if (hasModels) await seedModels(bucket as unknown as Parameters<typeof seedModels>[0], projectDir);
  return {
    db,
    bucket,
    signingKey,
    call: (method: string, path: string, key: string, body?: object) =>
      workerd.dispatchFetch(`http://service${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}` },
        body: body && JSON.stringify(body),
      }),
    /** @param onMessage also gets what comes before the caller could listen */
    async connect(url: string, onMessage: (text: string) => void = () => {}) {
      const { webSocket, status } = await workerd.dispatchFetch(url.replace(/^ws/, 'http'), { headers: HANDSHAKE });
      if (!webSocket) throw new Error(`no connection: ${status}`);
      webSocket.addEventListener('message', ({ data }) => onMessage(String(data)));
      webSocket.accept();
      return webSocket;
    },
    sweep: async () => (await workerd.getWorker()).scheduled({ cron: '*/5 * * * *', scheduledTime: new Date() }),
    objects: async (binding: string) =>
      (await workerd.getDurableObjectNamespace(binding)) as unknown as DurableObjectNamespace,
    stop: () => workerd.dispose(),
  };
}

/** The code that a checkout gives which uses that pack: the manifest, and in it the name, is part of the bundle. A build of its own takes ten seconds. */
function builtWith(pack: string, code: string): string {
  const [before, after, ...rest] = code.split('use:"default"');
  if (after === undefined || rest.length > 0) throw new Error('The bundle does not name the pack in use, or twice.');
  return `${before}use:"${pack}"${after}`;
}
