import { join } from 'node:path';
import { defineConfig } from 'vite';

// The same page in every environment.
process.env['NODE_ENV'] = 'production';

/** Builds the status page. The tests have a configuration of their own, `test/vitest.config.ts`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/page/',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'inline' },
  build: {
    outDir: '../../../dist/status/page',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: { page: join(import.meta.dirname, 'index.html') },
      output: {
        // No hashes in the names: browsers ask for the files each time, and the login form names `page.css`.
        entryFileNames: '[name].js',
        assetFileNames: '[name][extname]',
        banner: '/*! Contains Preact, (c) 2015-present Jason Miller, MIT license */',
      },
    },
  },
});
