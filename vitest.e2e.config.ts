import { defineConfig } from 'vitest/config';
import { SLOW } from './vitest.config.ts';

/** Streams in real time: a busy service refuses them. */
const REAL_TIME = ['test/e2e/service/live.test.ts', 'test/e2e/service/command-live.test.ts'];

/** Long tests against a real local service: real models, real time, kills, restarts, many shards. */
export default defineConfig({
  test: {
    globalSetup: 'test/temporary-files.ts',
    setupFiles: 'test/runtime-globals.ts',
    env: { TEST_CASES: 'all' },
    testTimeout: 600_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'service',
          include: ['test/e2e/service/**/*.test.ts', 'src/audio/{fuzz,recording}.test.ts', ...SLOW],
          exclude: REAL_TIME,
          // Files of a worker share a service.
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'isolated',
          // They replace modules, or count the calls of a whole process.
          include: ['test/sim/crash.test.ts', 'src/jobs/ingest.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ['test/e2e/*.test.ts', ...REAL_TIME],
          // One at a time: they load the machine.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
