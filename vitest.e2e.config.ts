import { defineConfig } from 'vitest/config';

/** Long tests against a real local service: kills, restarts, many shards. One at a time: they load the machine. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
});
