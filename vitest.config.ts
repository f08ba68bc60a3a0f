import { defineConfig } from 'vitest/config';

/** Files that replace modules, or load one twice: each runs in a process of its own. */
const ISOLATED = [
  'client/deploy/sequence.test.ts',
  'client/local/paths.test.ts',
  'src/jobs/ingest.test.ts',
  'test/sim/*.test.ts',
];

/** Unit, golden and contract tests run in Node; those that need workerd start the real local service. */
export default defineConfig({
  test: {
    globalSetup: 'test/temporary-files.ts',
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: [
            'src/**/*.test.ts',
            'durable-objects/**/*.test.ts',
            'client/**/*.test.ts',
            'bench/**/*.test.ts',
            'public/**/*.test.ts',
            'test/{unit,golden,contract,workers}/**/*.test.ts',
          ],
          exclude: ISOLATED,
          // Loading modules and starting services takes longer than most tests.
          isolate: false,
        },
      },
      { extends: true, test: { name: 'isolated', include: ISOLATED } },
    ],
    setupFiles: 'test/runtime-globals.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
