/** Sets environment variables while something runs, and not for programs that are started later. */
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
