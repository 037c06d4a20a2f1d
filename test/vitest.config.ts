import { defineConfig } from 'vitest/config';

/** The slow suites run by name (`npm run processes`, `chaos`, `fuzz`, `simulate`), everything else with `npm test`. */
const slow = process.env['LABFEED_SLOW'];

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: slow ? [`${slow}/**/*.test.ts`] : ['**/*.test.ts'],
    exclude: slow ? [] : ['chaos/**', 'fuzz/**', 'processes/**'],
    // Starting a process takes seconds on a busy machine, and a test may start many: only what hangs is ended.
    testTimeout: slow ? 600_000 : 60_000,
    hookTimeout: 60_000,
    globalSetup: './support/shared-folder.ts',
    restoreMocks: true,
    // Threads that the tests start run the sources too.
    execArgv: ['--import', new URL('./support/typescript.mjs', import.meta.url).href],
    // Some tests wait for other processes, so two processors have time for a third worker. A fourth costs more than it saves.
    maxWorkers: 3,
    // Modules have no state, so test files can share them: loading them takes a quarter of the time.
    isolate: false,
  },
});
