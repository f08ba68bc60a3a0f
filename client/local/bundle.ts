import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { API, type ServiceWorker, WORKERS } from '../workers.ts';
import type { WorkerOptions } from './miniflare.ts';
import { isInstalled, localDir, makePrivateDir, prebuiltDir } from './paths.ts';
import { withoutSignalHandlers, withVariables } from './process-globals.ts';

let wrangler: Promise<typeof import('wrangler')> | undefined;

/**
 * Loads wrangler's API at the first call, which takes most of a second. wrangler reads the path of its log while it
 * loads; by default every process writes a log to the home folder.
 */
export function loadWrangler(): Promise<typeof import('wrangler')> {
  wrangler ??= withVariables({ WRANGLER_LOG_PATH: newLog('wrangler-api.log') }, () =>
    withoutSignalHandlers(() => import('wrangler')),
  );
  return wrangler;
}

/** Removes the log of an earlier run. @returns its path */
function newLog(name: string): string {
  makePrivateDir(localDir);
  const path = join(localDir, name);
  rmSync(path, { force: true });
  return path;
}

/** Variables that make wrangler silent and offline and keep only the log of its latest run. */
export function quietWranglerEnv(): Record<string, string> {
  return {
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_HIDE_BANNER: 'true',
    WRANGLER_LOG_PATH: newLog('wrangler.log'),
    FORCE_COLOR: '0',
  };
}

/** Path of wrangler's command-line script in node_modules. */
export function wranglerScript(): string {
  const require = createRequire(import.meta.url);
  return join(dirname(require.resolve('wrangler/package.json')), 'bin', 'wrangler.js');
}

/** Folders and files that the bundles depend on. */
const inputs = [
  'src',
  'public',
  // Sources of the playground's client and formats.
  'client/sdk',
  'client/live',
  'client/format',
  'durable-objects',
  'wasm',
  'models/manifest.json',
  ...WORKERS.map(({ config }) => config),
  'package-lock.json',
  '.dev.vars',
];
/**
 * Bundles like a deployment. Minified, because an isolate keeps its code as text. That text takes two bytes per
 * character if one is outside Latin-1, which happens only in comments: 3.7 MB instead of 0.9.
 */
const BUNDLING = ['deploy', '--dry-run', '--minify'];
const inputPattern = /\.(ts|js|mjs|json|wasm|onnx|toml|sql|html|css|txt|md|bin|vars)$/;

/**
 * Bundles the Workers with wrangler's bundler and reads the bindings from their wrangler files. Caches both by the hash
 * of the sources.
 *
 * @param root of a checkout; an earlier version may have a single Worker
 * @param cacheDir folder of the bundles
 * @returns the Workers, with the one that answers HTTP first
 */
export async function bundleWorkers(root: string, cacheDir: string): Promise<BundledWorker[]> {
  const bundleDir = isInstalled ? prebuiltDir(root) : join(cacheDir, sourcesHash(root));
  if (!existsSync(bundleDir)) await build(root, cacheDir, bundleDir);
  return workersOf(root).map((worker) => {
    const folder = join(bundleDir, worker.config);
    const { entry, options } = JSON.parse(readFileSync(join(folder, 'options.json'), 'utf8')) as StoredOptions;
    const code = { rootPath: folder, modulesRoot: folder, modules: listModules(folder, entry) };
    return { ...worker, options: { ...options, ...code } as WorkerOptions };
  });
}

export interface BundledWorker extends ServiceWorker {
  /** For Miniflare: modules, bindings, queues, Durable Objects. */
  readonly options: WorkerOptions;
}

const workersOf = (root: string): ServiceWorker[] =>
  [API, ...WORKERS.filter((worker) => worker !== API)].filter(({ config }) => existsSync(join(root, config)));

/** `options.json` in a bundle's folder. */
interface StoredOptions {
  /** Name of the entry's module. */
  readonly entry: string;
  readonly options: Partial<WorkerOptions>;
}

/**
 * Reads the bindings of a Worker's wrangler file as Miniflare options, without the code. `.dev.vars` adds variables;
 * `.env` does not, because it is for wrangler itself and contains its token.
 */
export const readBindings = async (root: string, worker: ServiceWorker): Promise<Partial<WorkerOptions>> =>
  (await readOptions(root, worker)).options;

async function readOptions(root: string, { config: name }: ServiceWorker): Promise<StoredOptions> {
  const { unstable_getMiniflareWorkerOptions, unstable_readConfig } = await loadWrangler();
  return withVariables(READING, () => {
    const config = unstable_readConfig({ config: join(root, name) });
    const options = { ...unstable_getMiniflareWorkerOptions(config).workerOptions, name: config.name };
    return { entry: `${basename(config.main ?? '', '.ts')}.js`, options };
  });
}

/** Keeps wrangler's messages off stdout, which is for results, and stops it from reading `.env`. */
const READING = { WRANGLER_LOG: 'warn', CLOUDFLARE_LOAD_DEV_VARS_FROM_DOT_ENV: 'false' };

/** Hash of the Workers' sources; of an installed package, hash of its package.json. */
export function sourcesHash(root: string): string {
  if (isInstalled)
    return createHash('sha256')
      .update(readFileSync(join(root, 'package.json')))
      .digest('hex')
      .slice(0, 24);
  const hash = createHash('sha256').update(BUNDLING.join(' '));
  const visit = (path: string): void => {
    if (!existsSync(path)) return;
    if (statSync(path).isDirectory()) {
      for (const name of readdirSync(path).sort()) visit(join(path, name));
    } else if (inputPattern.test(path) && !path.endsWith('.test.ts')) {
      hash
        .update(`${relative(root, path)}\0`)
        .update(readFileSync(path))
        .update('\0');
    }
  };
  for (const input of inputs) visit(join(root, input));
  return hash.digest('hex').slice(0, 24);
}

async function build(root: string, cacheDir: string, bundleDir: string): Promise<void> {
  makePrivateDir(cacheDir);
  const scratch = `${bundleDir}.${process.pid}.tmp`;
  rmSync(scratch, { recursive: true, force: true });
  const env = { ...process.env, ...quietWranglerEnv() };
  const bundled = await Promise.allSettled(
    workersOf(root).map((worker) => bundle(root, worker, join(scratch, worker.config), env)),
  );
  const failed = bundled.find((result) => result.status === 'rejected');
  if (failed) {
    rmSync(scratch, { recursive: true, force: true });
    throw failed.reason;
  }
  for (const worker of workersOf(root)) {
    const { entry, options } = await readOptions(root, worker);
    // Only bundling needs these rules. The bundle lists its modules with their types.
    const stored: StoredOptions = { entry, options: { ...options, modulesRules: undefined } };
    writeFileSync(join(scratch, worker.config, 'options.json'), JSON.stringify(stored));
  }
  for (const name of readdirSync(cacheDir)) {
    if (name !== scratch.slice(cacheDir.length + 1)) dropIfStale(join(cacheDir, name));
  }
  try {
    renameSync(scratch, bundleDir);
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true });
    // Otherwise another process has created the same bundle.
    if (!existsSync(bundleDir)) throw error;
  }
}

async function bundle(root: string, worker: ServiceWorker, folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  const args = [wranglerScript(), ...BUNDLING, '--config', join(root, worker.config), '--outdir', folder];
  try {
    await promisify(execFile)(process.execPath, args, { cwd: root, env, maxBuffer: 16 * 1024 * 1024 });
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: string; stdout?: string };
    throw new Error(`The Worker could not be bundled:\n${stripVTControlCharacters(stderr || stdout || String(error))}`);
  }
}

/** Removes a bundle that is older than a day. Newer ones stay, because two checkouts may share a folder. */
function dropIfStale(path: string): void {
  const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (ageMs > 24 * 3600 * 1000) rmSync(path, { recursive: true, force: true });
}

type Module = { type: 'ESModule' | 'CompiledWasm' | 'Data' | 'Text'; path: string };

/** Lists the entry first, because Miniflare uses the first module as the Worker. */
function listModules(folder: string, entry: string): Module[] {
  const typeOf = (name: string): Module['type'] | undefined => {
    if (name.endsWith('.wasm')) return 'CompiledWasm';
    // Files that the Worker serves unchanged.
    if (/(reference\.(js|css)|\.mp3)$/.test(name)) return 'Data';
    if (/(playground|microphone-frames|docs)\.js$/.test(name)) return 'Text';
    if (name.endsWith('.onnx') || name.endsWith('.bin')) return 'Data';
    if (/\.(txt|html|sql|css)$/.test(name)) return 'Text';
    return undefined;
  };
  const otherModules = readdirSync(folder).flatMap((name) => {
    const type = typeOf(name);
    return type ? [{ type, path: join(folder, name) }] : [];
  });
  return [{ type: 'ESModule', path: join(folder, entry) }, ...otherModules];
}
