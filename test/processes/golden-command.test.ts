import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';

const NOTEBOOK = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';
const SAMPLE = 'Sample: λ\nOperator: Ada\nWell\tA260 (AU)\nA1\t2.100\nA2\tOVER\n';

/** An instrument with these golden tests, in an included file next to its samples. */
function site(tests: string): string {
  const folder = tempFolder();
  mkdirSync(join(folder, 'parts', 'samples'), { recursive: true });
  writeFileSync(join(folder, 'parts', 'samples', 'a.tsv'), SAMPLE);
  writeFileSync(join(folder, 'parts', 'samples', 'prose.tsv'), 'Dear diary\n');
  writeFileSync(join(folder, 'labfeed.yaml'), `${NOTEBOOK}include: parts/*.yaml\n`);
  writeFileSync(
    join(folder, 'parts', 'nanodrop.yaml'),
    `instruments:
  untested: { watch: ., parse: { table: {} } }
  nanodrop:
    watch: .
    parse: { delimiter: tab, missing: OVER, meta: { until: Well, separator: ":" }, table: { header: Well } }
    experiment: { title: "{{ meta.Sample }} by {{ meta.Operator }}" }
    tests:
${tests}`,
  );
  return folder;
}

const PASSING = `
      - { file: samples/a.tsv, expect: { title: λ by Ada, readings: 2, "readings[0].A260": 2.1, 'meta["Sample"]': λ } }
      - { file: samples/prose.tsv, expect: { quarantined: /no line matches/ } }
`;
const FAILING = `
      - { file: samples/a.tsv, expect: { title: λ by Ada, readings: 12 } }
      - file: samples/a.tsv
        expect:
          readings[0].A26O: 2.1
          readings[0].A260: 1.23
      - { file: samples/prose.tsv, expect: { readings: 1 } }
      - { file: samples/gone.tsv, expect: { readings: 1 } }
`;

test('check and try --test count passing tests, of one instrument or all', async () => {
  const folder = site(PASSING);
  const check = await labfeed(['check', '--offline'], folder);
  expect(check).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringContaining('nanodrop: 2 tests passed'),
  });
  expect(await labfeed(['try', '--test'], folder)).toEqual({
    status: 0,
    stderr: '',
    stdout: 'untested: no tests\nnanodrop: 2 tests passed\n',
  });
  expect((await labfeed(['try', '--test', 'nanodrop'], folder)).stdout).toBe('nanodrop: 2 tests passed\n');
});

test('a failing test shows the expected and actual value, the sample and the location of the expectation', async () => {
  const folder = site(FAILING);
  const part = join(folder, 'parts', 'nanodrop.yaml');
  const { status, stdout, stderr } = await labfeed(['try', '--test', 'nanodrop'], folder);
  expect({ status, stdout }).toEqual({ status: 1, stdout: 'nanodrop: 4 of 4 tests failed\n' });
  expect(stderr).toBe(`${part}:9:69: samples/a.tsv, readings: differs
    expected  12 rows
    actual    2 rows
${part}:12:29: samples/a.tsv, readings[0].A26O: the file has no column "A26O"
  → did you mean "A260"?
${part}:13:29: samples/a.tsv, readings[0].A260: differs
    expected  1.23
    actual    2.1, written "2.100"
${part}:14:17: samples/prose.tsv: would be quarantined: no line matches \`header: Well\`
  → correct \`header\` in the mapping
${part}:15:17: samples/gone.tsv: no such file
`);
  const json = await labfeed(['try', '--test', '--json'], folder);
  expect(json.status).toBe(1);
  expect(JSON.parse(json.stdout)[3]).toEqual({
    instrument: 'nanodrop',
    file: join(folder, 'parts', 'samples', 'gone.tsv'),
    passed: false,
    problems: [{ at: `${part}:15:17`, message: 'samples/gone.tsv: no such file' }],
  });
});

test('check fails if a test fails, with the same message', async () => {
  const folder = site(FAILING);
  const { status, stdout } = await labfeed(['check', '--offline'], folder);
  expect(status).toBe(1);
  expect(stdout).toContain('error  nanodrop: 4 of 4 tests failed');
  expect(stdout).toMatch(/error {2}.*nanodrop\.yaml:13:29: .*\n {4}expected {2}1\.23\n {4}actual {4}2\.1/);
  const json = JSON.parse((await labfeed(['check', '--offline', '--json'], folder)).stdout);
  expect(json).toMatchObject({ ok: false, problems: [] });
});

test('an invalid expectation is a configuration error, reported at its line', async () => {
  const folder = site('      - { file: samples/a.tsv, expect: { titel: x } }\n');
  for (const args of [
    ['check', '--offline'],
    ['try', '--test'],
    ['try', '--test', 'nanodrop'],
  ]) {
    const { status, stderr } = await labfeed(args, folder);
    expect(status).toBe(78);
    expect(stderr).toContain('nanodrop.yaml:8:49: tests[0].expect.titel: unknown key\n  → did you mean title?');
    expect(stderr).not.toContain('notebook');
  }
});

test('--test takes no files, and an unknown instrument is an error', async () => {
  const folder = site(PASSING);
  expect((await labfeed(['try', '--test', 'nanodrop', 'a.tsv'], folder)).status).toBe(2);
  expect(await labfeed(['try', '--test', 'nanodrpo'], folder)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('did you mean nanodrop?'),
  });
});
