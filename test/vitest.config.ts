import { defineConfig } from 'vitest/config';

/** The slow proofs run by name (`npm run processes`, `chaos`, `simulate`), everything else with `npm test`. */
const slow = process.env['LABFEED_SLOW'];

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: slow ? [`${slow}/**/*.test.ts`] : ['**/*.test.ts'],
    exclude: slow ? [] : ['chaos/**', 'processes/**'],
    testTimeout: slow ? 120_000 : 60_000,
    restoreMocks: true,
    // Whole-daemon tests mostly wait for processes of their own.
    maxWorkers: 4,
    // No module has state of its own, so files can share what they import: a quarter of the time is loading it.
    isolate: false,
  },
});
