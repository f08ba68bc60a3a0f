import { join } from 'node:path';
import { projectDir } from './paths.ts';
import { workerdPath } from './runtime.ts';

/**
 * Ctrl-C at a terminal goes to every process in the foreground, workerd included, and its end to those in the background, too. After this call,
 * a local service that this process starts lives on until it is stopped: for work that ends properly after Ctrl-C, or outlives the terminal. Does
 * nothing on Windows.
 */
export function keepServiceFromInterrupts(): void {
  if (process.platform === 'win32') return;
  const { env } = process;
  env.ROLLCALL_WORKERD ??= env.MINIFLARE_WORKERD_PATH ?? workerdPath();
  env.MINIFLARE_WORKERD_PATH = join(projectDir, 'client/local/uninterrupted.sh');
}
