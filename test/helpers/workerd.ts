import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { build } from 'esbuild';
import { type BundledWorker, bundleWorkers } from '../../client/local/bundle.ts';
import { Miniflare, type MiniflareOptions } from '../../client/local/miniflare.ts';
import { bundleCacheDir, projectDir } from '../../client/local/paths.ts';
import { seedModels } from '../../client/local/seed.ts';
import { API, JOBS, LIVE } from '../../client/workers.ts';
import { migrate } from './database.ts';

interface WasmModule {
  readonly type: 'CompiledWasm';
  readonly path: string;
  readonly contents: Uint8Array<ArrayBuffer>;
}

/**
 * Starts a Worker of `test/workers` in workerd. The caller disposes of it.
 *
 * @param bindings Miniflare's options for the bindings
 * @param modules modules that the Worker imports by their file names
 */
export async function startTestWorker(
  name: string,
  bindings: Partial<MiniflareOptions> = {},
  modules: readonly WasmModule[] = [],
): Promise<Miniflare> {
  const contents = await bundleTestWorker(name);
  const entry = { type: 'ESModule', path: 'worker.mjs', contents };
  const options = { cf: false, compatibilityDate: compatibilityDate(), ...bindings, modules: [entry, ...modules] };
  const workerd = new Miniflare(options as MiniflareOptions);
  await workerd.ready;
  return workerd;
}

/** Bundles a Worker of `test/workers`; WebAssembly modules and the service's Workers stay imports. */
async function bundleTestWorker(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(projectDir, 'test/workers', `${name}.worker.ts`)],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['cloudflare:*'],
    write: false,
    plugins: [
      {
        name: 'imports',
        setup(hooks) {
          hooks.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({
            path: `./${path.split('/').pop()}`,
            external: true,
          }));
          hooks.onResolve({ filter: /\/src\/(jobs|live)-worker\.ts$/ }, () => ({
            path: './worker.js',
            external: true,
          }));
        },
      },
    ],
  });
  return outputFiles[0].text;
}

/** The service's compatibility date, on which the behaviour of storage and streams depends. */
function compatibilityDate(): string {
  const config = readFileSync(join(projectDir, 'wrangler.toml'), 'utf8');
  return /^compatibility_date = "(.+)"$/m.exec(config)![1]!;
}

const HANDSHAKE = { Upgrade: 'websocket' };

interface WorkerChanges {
  /** Worker of `test/workers` whose exports replace those of the Worker of jobs with the same names. */
  readonly jobs?: string;
  /** The same for the Worker of live streams. */
  readonly live?: string;
  /** The model pack that the Workers are built with. */
  readonly pack?: string;
  /** Whether the bucket has the models of the default pack. */
  readonly hasModels?: boolean;
  /** Requests a minute that the platform's rate limiters allow, by binding. */
  readonly floodLimits?: Readonly<Record<string, number>>;
  /** Variables of all Workers. */
  readonly vars?: Readonly<Record<string, string>>;
}

/** The service's Workers in workerd, with empty storage in memory, without queue consumers; the caller stops them. */
export async function startWorkers({
  jobs,
  live,
  pack = 'default',
  hasModels = false,
  floodLimits,
  vars,
}: WorkerChanges = {}) {
  const signingKey = Buffer.alloc(32).toString('base64');
  const bundled = await bundleWorkers(projectDir, bundleCacheDir(projectDir));
  const fronts = new Map([
    [JOBS.config, jobs && (await bundleTestWorker(jobs))],
    [LIVE.config, live && (await bundleTestWorker(live))],
  ]);
  const options = {
    cf: false,
    workers: bundled.map((worker) => ({
      ...worker.options,
      modules: modulesOf(worker, pack, fronts.get(worker.config)),
      bindings: { ...worker.options.bindings, SIGNING_KEY: signingKey, ...vars },
      ...(worker.config === API.config && floodLimits && { ratelimits: rateLimiters(floodLimits) }),
      queueConsumers: {},
    })),
    // Discard the Workers' log, which would hide the results of the tests.
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => void [stdout.resume(), stderr.resume()],
  };
  const workerd = new Miniflare(options as unknown as MiniflareOptions);
  await workerd.ready;
  // Miniflare declares the experimental version of these types.
  const db = (await workerd.getD1Database('DB')) as unknown as D1Database;
  const bucket = (await workerd.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  await migrate(db);
  if (hasModels) await seedModels(bucket as unknown as Parameters<typeof seedModels>[0], projectDir);
  return {
    db,
    bucket,
    signingKey,
    fetch: (path: string, init: Parameters<Miniflare['dispatchFetch']>[1]) =>
      workerd.dispatchFetch(`http://service${path}`, init),
    call: (method: string, path: string, key: string, body?: object) =>
      workerd.dispatchFetch(`http://service${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}` },
        body: body && JSON.stringify(body),
      }),
    /** @param onMessage receives all messages, including those before the caller could add a listener */
    async connect(url: string, onMessage: (text: string) => void = () => {}) {
      const { webSocket, status } = await workerd.dispatchFetch(url.replace(/^ws/, 'http'), { headers: HANDSHAKE });
      if (!webSocket) throw new Error(`no connection: ${status}`);
      webSocket.addEventListener('message', ({ data }) => onMessage(String(data)));
      webSocket.accept();
      return webSocket;
    },
    sweep: async () => (await workerd.getWorker()).scheduled({ cron: '*/5 * * * *', scheduledTime: new Date() }),
    /**
     * @returns the stub of an object by its name. After a failed call a new stub is needed. Miniflare's type of a
     *   binding does not name the class of its objects, so the caller states its methods.
     */
    async objects<Methods>(binding: string): Promise<(name: string) => Methods> {
      const bound = bundled.find(({ options: { durableObjects = {} } }) => binding in durableObjects);
      const namespace = await workerd.getDurableObjectNamespace(binding, bound?.name);
      return (name) => namespace.get(namespace.idFromName(name)) as unknown as Methods;
    },
    stop: () => workerd.dispose(),
  };
}

function modulesOf({ options }: BundledWorker, pack: string, front = '') {
  const folder = String(options.rootPath);
  const [main, ...others] = options.modules as { readonly type: string; readonly path: string }[];
  const contents = `export * from './worker.js'; export { default } from './worker.js'; ${front}`;
  return [
    { type: 'ESModule', path: join(folder, 'front.mjs'), contents },
    { ...main!, path: join(folder, 'worker.js'), contents: builtWith(pack, readFileSync(main!.path, 'utf8')) },
    ...others,
  ];
}

const rateLimiters = (limits: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(limits).map(([name, limit]) => [name, { namespace_id: name, simple: { limit, period: 60 } }]),
  );

/**
 * The bundle of a checkout whose manifest names this pack. Replaces the name in an existing bundle, because another
 * build would take ten seconds.
 */
function builtWith(pack: string, code: string): string {
  const [before, after, ...rest] = code.split('use:"default"');
  if (after === undefined || rest.length > 0) throw new Error('The bundle does not name the pack in use, or twice.');
  return `${before}use:"${pack}"${after}`;
}
