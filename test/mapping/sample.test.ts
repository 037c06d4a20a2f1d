import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadConfig } from '../../src/config/load.js';
import { openRun } from '../../src/mapping/sample.js';
import { runGoldenTests } from '../../src/mapping/tests.js';
import { tempFolder } from '../support/temp-folder.js';

const FILES = {
  'samples/seq/s1.D/report.csv': 'Peak,Area\nA,12\n',
  'samples/seq/s1.D/acq/method.txt': 'Method: FAST\n',
  'samples/seq/s1.D/acq/ignored.tmp': '',
  'samples/p.csv': 'Well,OD\nA1,0.5\n',
  'samples/p.xml': '<run><operator>Ada</operator></run>',
  'samples/alone.csv': 'Well,OD\nA1,0.5\n',
};

const GC = `watch: data, run: { folder: "*/*.D" }, parse: { main: report.csv, delimiter: ",", table: {},
  also: { acq/*.txt: { delimiter: tab, meta: { separator: ":" } } } }`;
const READER = `watch: data, run: { join: ["{stem}.csv", "{stem}.xml"] }, parse: { delimiter: ",", table: {},
  also: { "{stem}.xml": { format: xml, facts: { operator: //operator } } } }`;

function setUp(instrument: string) {
  const folder = tempFolder();
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  writeFileSync(join(folder, 'labfeed.yaml'), `instruments:\n  a: { ${instrument.replaceAll('\n', ' ')} }\n`);
  const [only = expect.fail('expected an instrument')] = loadConfig(join(folder, 'labfeed.yaml')).instruments;
  return {
    only,
    open: async (path: string) => {
      const run = await openRun(join(folder, path), only);
      return { path: run.path.slice(folder.length + 1), parts: run.parts?.map(({ name }) => name) };
    },
  };
}

test('a run of a folder is opened by its folder or any of its files, in any location', async () => {
  const { open } = setUp(GC);
  const run = { path: 'samples/seq/s1.D', parts: ['acq/method.txt', 'report.csv'] };
  expect(await open('samples/seq/s1.D')).toEqual(run);
  expect(await open('samples/seq/s1.D/report.csv')).toEqual(run);
  expect(await open('samples/seq/s1.D/acq/method.txt')).toEqual(run);
  await expect(open('samples/p.csv')).rejects.toThrow(/expected the folder of a run/);
  await expect(open('samples/seq')).rejects.toThrow(/expected the folder of a run/);
  await expect(open('samples/gone.D')).rejects.toThrow(/no such file/);
});

test('in the watched folder, a run is the same as for the daemon', async () => {
  const { open } = setUp('watch: samples, run: folder');
  expect((await open('samples/seq/s1.D/acq/method.txt')).path).toBe('samples/seq');
});

test('joined files are opened by any one of them, and only if all exist', async () => {
  const { open } = setUp(READER);
  expect(await open('samples/p.xml')).toEqual({ path: 'samples/p.csv', parts: ['p.csv', 'p.xml'] });
  await expect(open('samples/alone.csv')).rejects.toThrow(/the run is incomplete: .*alone\.xml is missing/);
  await expect(open('samples/seq')).rejects.toThrow(/expected one of the joined files/);
});

test('golden tests open a run of several files in the same way', async () => {
  const tests = `tests: [{ file: samples/seq/s1.D, expect: { readings: 1, meta.Method: FAST, title: s1 (a) } },
    { file: samples/seq/s1.D/report.csv, expect: { readings: 2 } }]`;
  const { only } = setUp(`${GC}, ${tests}`);
  const results = await runGoldenTests([only], { clock: systemClock });
  expect(results.map(({ problems }) => problems.map(({ message }) => message))).toEqual([
    [],
    [expect.stringContaining('actual    1 row')],
  ]);
});
