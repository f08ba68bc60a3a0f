import { defineConfig } from 'vitest/config';

/** Unit, golden and contract tests run in Node; those that need workerd start the real local service. */
export default defineConfig({
  test: {
    include: [
      'src/**/*.test.ts',
      'durable-objects/**/*.test.ts',
      'client/**/*.test.ts',
      'bench/**/*.test.ts',
      'public/**/*.test.ts',
      'test/{unit,golden,contract,workers,sim}/**/*.test.ts',
    ],
    globalSetup: 'test/temporary-files.ts',
    setupFiles: 'test/runtime-globals.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
