const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs code that installs signal handlers which end the process at once, as Miniflare and wrangler do, and removes
 * those handlers again. The caller decides what a signal means, and stops the service properly.
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

/** Sets environment variables while `run` works; programs that are started later do not get them. */
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
