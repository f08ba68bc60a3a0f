/** Builds the command and the bundles of the Workers, which the package contains instead of their sources. */
import { cpSync, rmSync } from 'node:fs';
import { buildCommand } from '../cli/build.js';
import { bundleWorkers } from './bundle.ts';
import { bundleCacheDir, prebuiltDir, projectDir } from './paths.ts';

rmSync(`${projectDir}/dist`, { recursive: true, force: true });
await buildCommand();
const target = prebuiltDir(projectDir);
for (const { config, options } of await bundleWorkers(projectDir, bundleCacheDir(projectDir))) {
  const filter = (path: string): boolean => !/(\.map|README\.md)$/.test(path);
  cpSync(String(options.rootPath), `${target}/${config}`, { recursive: true, filter });
}
