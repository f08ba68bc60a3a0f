import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { LocalStateError } from './state-error.ts';

/** What Miniflare runs where no variable names another program. */
export function workerdPath(): string {
  const ofMiniflare = createRequire(createRequire(import.meta.url).resolve('miniflare'));
  return (ofMiniflare('workerd') as { default: string }).default;
}

/**
 * Finds out whether this system can run workerd at all, in some ten milliseconds. Of one that cannot, as its C library is too old or another one, Miniflare tells
 * no more than that a pipe broke, or lets the process end.
 *
 * @throws LocalStateError where it cannot, with the system's own words
 */
export async function checkRuntime(): Promise<void> {
  try {
    await promisify(execFile)(process.env.MINIFLARE_WORKERD_PATH ?? workerdPath(), ['--version']);
  } catch (error) {
    const { message, stderr = '' } = error as Error & { stderr?: string };
    const why = stderr.trim().split('\n').at(-1) || message;
    throw new LocalStateError(`workerd, which runs the Worker, does not run on this system (${why}). ${NEEDS}`);
  }
}

const NEEDS = 'It needs Linux with glibc 2.35 or later, macOS 13.5 or later, or Windows 11.';
