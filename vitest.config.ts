import { readFileSync } from 'node:fs';
import { globSync } from 'tinyglobby';
import { defineConfig } from 'vitest/config';

const TESTS = [
  'src/**/*.test.ts',
  'durable-objects/**/*.test.ts',
  'client/**/*.test.ts',
  'bench/**/*.test.ts',
  'public/**/*.test.ts',
  'test/{unit,golden,contract,workers,sim}/**/*.test.ts',
];
const cwd = import.meta.dirname;
/** Files that replace modules or what these read once: each runs in a separate process. */
const ISOLATED = globSync(TESTS, { cwd, ignore: '**/node_modules/**' }).filter((file) =>
  /^ *(vi\.(mock|resetModules)\(|WebAssembly\.Memory = )/m.test(readFileSync(`${cwd}/${file}`, 'utf8')),
);

/** Tests that wait for timeouts of 10 to 20 s or start a process for each case: `npm run test:e2e` runs them. */
export const SLOW = [
  'client/cli/{deliver,mistakes}.test.ts',
  'client/deploy/lifecycle.test.ts',
  'durable-objects/{live-resume,source-copy}.test.ts',
  'test/contract/{day-output,events,healthz,live-limits,slow-senders,slow-servers,webhooks}.test.ts',
  'test/workers/isolation.test.ts',
];

/** Unit, golden and contract tests run in Node; those that need workerd start the real local service. */
export default defineConfig({
  test: {
    globalSetup: 'test/temporary-files.ts',
    setupFiles: 'test/runtime-globals.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    projects: [
      // Loading modules and starting services takes longer than most tests: files share both.
      { extends: true, test: { name: 'shared', include: TESTS, exclude: [...ISOLATED, ...SLOW], isolate: false } },
      { extends: true, test: { name: 'isolated', include: ISOLATED } },
    ],
  },
});
