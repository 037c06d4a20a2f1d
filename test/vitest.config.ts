import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    testTimeout: 20_000,
    restoreMocks: true,
    // Whole-daemon tests start processes of their own; more workers than cores only make them wait.
    maxWorkers: 2,
  },
});
