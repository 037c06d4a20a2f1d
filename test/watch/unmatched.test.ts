import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createUnmatched, type Unmatched } from '../../src/watch/scan.js';
import { tempFolder } from '../support/temp-folder.js';
import { watching } from './watching.js';

test('files that no glob fits are counted by their ending, but not what is ignored, a done-file, or another’s', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'sub'));
  const names = ['a.tsv', 'a.tsv.done', 'b.csv', 'sub/c.CSV', 'readme', '~lock.csv', 'theirs.xml', 'z.log'];
  for (const name of names) writeFileSync(join(folder, name), '');
  const found: Unmatched[] = [];
  const watcher = watching(
    {
      watch: folder,
      files: ['**/*.tsv'],
      ignore: ['**/~*'],
      ready: { doneFile: '{name}.done' },
    },
    { unmatched: (one) => void found.push(one), isOthers: (path) => path.endsWith('.xml') },
  );
  await watcher.start();
  expect(found).toEqual([
    new Map([
      ['.csv', { files: 2, example: join(folder, 'sub/c.CSV') }],
      ['', { files: 1, example: join(folder, 'readme') }],
      ['.log', { files: 1, example: join(folder, 'z.log') }],
    ]),
  ]);
});

test('however many endings there are, few are kept', () => {
  const unmatched = createUnmatched();
  for (let n = 0; n < 1000; n += 1) unmatched.add(`/data/run.${n}`);
  expect(unmatched.found.size).toBeLessThan(60);
  expect([...unmatched.found.values()].reduce((sum, { files }) => sum + files, 0)).toBe(1000);
});
