const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs code and removes the signal handlers that it installs. Miniflare and wrangler install handlers that end the
 * process at once, but the caller must stop the service properly.
 */
export async function withoutSignalHandlers<T>(run: () => T | Promise<T>): Promise<T> {
  const before = SIGNALS.map((signal) => process.listeners(signal));
  const value = await run();
  SIGNALS.forEach((signal, index) => {
    const added = process.listeners(signal).filter((listener) => !before[index].includes(listener));
    for (const listener of added) process.removeListener(signal, listener);
  });
  return value;
}

/** Sets environment variables during `run`, so that programs started later do not inherit them. */
export async function withVariables<T>(
  variables: Readonly<Record<string, string>>,
  run: () => T | Promise<T>,
): Promise<T> {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}
