import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Threads and child processes run from the TypeScript source: without a cache each of them strips the types anew, which
// is more than half of the CPU time of the store's tests.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'node-compile');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Bounds, not expectations: on a busy machine starting a server alone takes seconds.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    pool: 'forks',
    reporters: ['default', './test/support/skip-report.ts'],
    // Two cores serve the CI machine; more workers only make the argon2 and TLS tests fight each other.
    maxWorkers: 2,
  },
});
