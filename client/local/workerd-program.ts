import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LocalStateError, projectDir } from './paths.ts';

/** Path of Miniflare's workerd. */
function workerdPath(): string {
  const requireOfMiniflare = createRequire(createRequire(import.meta.url).resolve('miniflare'));
  return (requireOfMiniflare('workerd') as { default: string }).default;
}

const REQUIREMENTS = 'It needs Linux with glibc 2.35 or later, macOS 13.5 or later, or Windows 11.';

/**
 * Checks in about 10 ms that workerd runs on this system. Without the right C library Miniflare would report only a
 * broken pipe or end the process.
 *
 * @throws LocalStateError with the system's message if it does not run
 */
export async function checkWorkerd(): Promise<void> {
  try {
    await promisify(execFile)(process.env.MINIFLARE_WORKERD_PATH ?? workerdPath(), ['--version']);
  } catch (error) {
    const { message, stderr = '' } = error as Error & { stderr?: string };
    const reason = stderr.trim().split('\n').at(-1) || message;
    throw new LocalStateError(
      `workerd, which runs the Worker, does not run on this system (${reason}). ${REQUIREMENTS}`,
    );
  }
}

/**
 * Makes services that this process starts later ignore Ctrl-C and the end of the terminal, which reach every process in
 * the foreground. For work that must end properly after Ctrl-C or outlive the terminal. Does nothing on Windows.
 */
export function keepServiceFromInterrupts(): void {
  if (process.platform === 'win32') return;
  const { env } = process;
  env.ROLLCALL_WORKERD ??= env.MINIFLARE_WORKERD_PATH ?? workerdPath();
  env.MINIFLARE_WORKERD_PATH = join(projectDir, 'client/local/uninterrupted.sh');
}
