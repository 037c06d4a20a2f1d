import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type Instrument, loadConfig } from '../../src/config/load.js';
import { runGoldenTests, type TestDeps } from '../../src/mapping/tests.js';
import { tempFolder } from '../support/temp-folder.js';

function instruments(text: string): readonly Instrument[] {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), `instruments:\n${text}`);
  writeFileSync(join(folder, 'a.csv'), 'Sample,Weight (mg)\nA,1.5\nB,2.5\n');
  writeFileSync(join(folder, 'doubtful.csv'), 'Sample;Weight (mg)\nA;1,234\nB;5,678\n');
  return loadConfig(join(folder, 'labfeed.yaml')).instruments;
}

async function failures(text: string, deps: TestDeps = { clock: systemClock }): Promise<string[]> {
  const results = await runGoldenTests(instruments(text), deps);
  return results.flatMap(({ problems }) => problems.map(({ message }) => message));
}

test('a mapping that is left to measuring can be pinned by a test', async () => {
  const test = (rows: number) =>
    `  a: { watch: ., tests: [{ file: a.csv, expect: { readings: ${rows}, columns.Weight.unit: mg } }] }\n`;
  expect(await failures(test(2))).toEqual([]);
  expect(await failures(test(3))).toEqual([expect.stringContaining('came      2 rows')]);
});

test('a file that must be refused passes when it is, for the reason that is asked for', async () => {
  const test = (wanted: string) =>
    `  a: { watch: ., tests: [{ file: doubtful.csv, expect: { quarantined: ${wanted} } }] }\n`;
  expect(await failures(test('true'))).toEqual([]);
  expect(await failures(test('/doubtful\\.csv:2:\\d+/'))).toEqual([]);
  expect(await failures(test('no table'))).toEqual([
    expect.stringMatching(
      /refused, but not for this reason\n {4}expected {2}"no table"\n {4}came {6}".*1,234/,
    ),
  ]);
});

test('every problem names the instrument that it stops, and no other', async () => {
  const results = await runGoldenTests(
    instruments(
      '  a: { watch: ., tests: [{ file: a.csv, expect: {} }] }\n  b: { watch: ., tests: [{ file: gone.csv, expect: {} }] }\n  c: { watch: . }\n',
    ),
    { clock: systemClock },
  );
  expect(results).toMatchObject([
    { instrument: 'a', problems: [] },
    { instrument: 'b', problems: [{ stops: { instrument: 'b' } }] },
  ]);
});

test('a sample that cannot be read in time is a failure, and keeps nobody waiting', async () => {
  const text = '  a: { watch: ., tests: [{ file: a.csv, expect: {} }] }\n';
  const clock = { ...systemClock, sleep: async () => undefined };
  expect(await failures(text, { clock })).toEqual(['a.csv: it could not be read within 30 s']);
  expect(await failures(text, { clock: systemClock, signal: AbortSignal.abort() })).toHaveLength(1);
});
