const NAME = 'MINIFLARE_WORKERD_V8_FLAGS';

/**
 * Keeps two of V8's compilers off its background thread. On two cores V8 has one such thread. A compiler that waits there for a garbage
 * collection of the main thread blocks the sweeper that the main thread waits for: workerd then answers nothing until it is killed.
 */
const FLAGS = '--no-concurrent-recompilation --no-concurrent-sparkplug';

let starts = 0;

/**
 * Runs a start of workerd with these flags. Flags that the user has set in the environment stay as they are. workerd refuses to start with
 * a flag that it does not know.
 */
export async function withV8Flags<T>(start: () => Promise<T>): Promise<T> {
  const { env } = process;
  // While another start runs, the variable is ours.
  if (starts === 0 && env[NAME] !== undefined) return start();
  starts++;
  env[NAME] = FLAGS;
  try {
    return await start();
  } finally {
    if (--starts === 0) delete env[NAME];
  }
}
