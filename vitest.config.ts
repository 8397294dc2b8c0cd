import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 120_000,
    pool: 'forks',
    reporters: ['default', './test/support/skip-report.ts'],
    // Two cores serve the CI machine; more workers only make the argon2 and TLS tests fight each other.
    maxWorkers: 2,
  },
});
