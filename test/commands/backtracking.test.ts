import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';

test('a regular expression with exponential backtracking does not block', async () => {
  const folder = tempFolder();
  const config = `instruments:
  balance:
    watch: .
    parse: { delimiter: ",", table: { header: a, skip: '/^(a|aa)+$/', rows: '/^(?<word>(?:\\w+\\s?)+),(?<n>\\d+)$/' } }
`;
  writeFileSync(join(folder, 'labfeed.yaml'), config);
  writeFileSync(join(folder, 'run.csv'), `a,b\n${'a'.repeat(60)}!\n${'a'.repeat(60)}!,5\nok,7\n`);
  const started = performance.now();
  const { status, stdout } = await labfeed(['try', 'balance', 'run.csv', '--json'], folder);
  expect(status).toBe(0);
  const [table] = JSON.parse(stdout).record?.tables ?? JSON.parse(stdout)[0].record.tables;
  expect(table.rows).toEqual([{ word: 'ok', n: 7 }]);
  expect(performance.now() - started).toBeLessThan(15_000);
});
