import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeSite } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const MAPPING = `instruments:
  nanodrop:
    watch: .
    parse: { delimiter: tab, dates: { format: dd/MM/yyyy }, meta: { until: Well, separator: ":" }, facts: { date: Date }, table: { header: Well } }
    experiment: { title: "{{ meta.Sample }} <1>", body: "<p>{{ meta.Sample }}</p>{{ readings | table }}", tags: [dna] }
`;
const FILE = 'Sample: λ & co\nDate: 03/04/2026\nWell\tA260 (AU)\nA1\t2.100\nA2\tOVER\n';

function trySite(): string {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), MAPPING);
  writeFileSync(join(folder, 'run.tsv'), FILE);
  return folder;
}

test('without a configuration, the default locations are listed and the exit status is 78', async () => {
  const { status, stderr } = await labfeed(['run']);
  expect(status).toBe(78);
  expect(stderr).toMatch(/labfeed\.yaml.*\/etc\/labfeed\/config\.yaml[\s\S]*→/);
});

test('an invalid configuration exits with 78 and lists every error at file:line:column, without a stack trace', async () => {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  writeFileSync(config, 'notebook: { url: "https://eln.example.org", kye: { env: A } }\njournal: []\n');
  for (const command of ['run', 'check']) {
    const { status, stderr } = await labfeed([command, '--config', config]);
    expect(status).toBe(78);
    expect(stderr).toContain(`${config}:1:45: unknown key "kye"\n  → did you mean key?`);
    expect(stderr).toContain(`${config}:2:10: journal: expected a path`);
    expect(stderr).not.toMatch(/\n\s+at /);
  }
});

test('try shows what would be sent, and needs no notebook section', async () => {
  const folder = trySite();
  const { status, stdout } = await labfeed(['try', 'nanodrop', 'run.tsv', '--json'], folder);
  expect(status).toBe(0);
  const { file, instrument, record, draft } = JSON.parse(stdout);
  expect(file).toBe(join(folder, 'run.tsv'));
  expect(instrument).toBe('nanodrop');
  expect(record.meta).toMatchObject({ Sample: 'λ & co', date: '2026-04-03' });
  expect(record.tables).toMatchObject([
    {
      name: 'readings',
      columns: expect.arrayContaining([{ name: 'A260', unit: 'AU' }]),
      rows: [{ Well: 'A1', A260: 2.1 }, { Well: 'A2' }],
    },
  ]);
  expect(draft).toMatchObject({ title: 'λ & co <1>', date: '2026-04-03', tags: ['dna'] });
  expect(draft.body).toContain('<p>λ &amp; co</p>');
  expect(draft.body).toContain('2.100');
  expect(draft.comments).toHaveLength(1);
  expect(draft.comments[0]).toMatch(/\nlabfeed [0-9a-f]{16}\.1$/);

  const text = await labfeed(['try', 'nanodrop', 'run.tsv'], folder);
  expect(text.stdout).toContain('date        2026-04-03 (from the fact "date")');
});

test('try reports why and where a file would be quarantined, and exits with 1', async () => {
  const folder = trySite();
  writeFileSync(join(folder, 'bad.tsv'), 'nothing of the kind\n');
  const { status, stderr } = await labfeed(['try', 'nanodrop', 'bad.tsv'], folder);
  expect(status).toBe(1);
  expect(stderr).toMatch(/would be quarantined: .*bad\.tsv.*Well/);
  expect((await labfeed(['try', 'nanodrpo', 'run.tsv'], folder)).stderr).toContain('did you mean nanodrop?');
  expect((await labfeed(['try', 'nanodrop', 'gone.tsv'], folder)).stderr).toContain('no such file');
});

test('check tests folders, journal, key and notebook, and shows the account of the key', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const { config } = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const good = await labfeed(['check', '--config', config]);
  expect(good.status).toBe(0);
  expect(good.stdout).toMatch(/balance: 0 matching files in /);
  expect(good.stdout).toMatch(/balance has no `parse`: .*\n.*labfeed learn/);
  expect(good.stdout).toMatch(/journal .* will be created/);
  expect(good.stdout).toMatch(/accepts the key; the account has 1 key: /);
  expect(good.stdout).not.toContain('every user');
  chmodSync(join(folder, 'api-key'), 0o644);
  const open = await labfeed(['check', '--config', config]);
  expect(open.status).toBe(0);
  expect(open.stdout).toMatch(/note +every user of this machine can read the API key in (.*)\n +→ .*chmod 600 \1\n/);

  makeSite(folder, {
    url: sandbox.url,
    key: 'wrong',
    instruments: '  gone: { watch: data/gone }\n  a: { watch: data/balance }\n  b: { watch: data, files: "**/*.csv" }',
  });
  writeFileSync(join(folder, 'data/balance/x.csv'), '');
  const bad = await labfeed(['check', '--config', config]);
  expect(bad.status).toBe(1);
  expect(bad.stdout).toMatch(/error +gone: the folder .* does not exist/);
  expect(bad.stdout).toMatch(/b overlaps with a: 1 file that matches both, such as .*x\.csv, goes to a/);
  expect(bad.stdout).toMatch(/error .*401/);
  expect(bad.stdout).not.toContain('wrong\n');
  expect((await labfeed(['check', '--offline', '--config', config])).status).toBe(0);
  expect(JSON.parse((await labfeed(['check', '--json', '--config', config])).stdout)).toMatchObject({
    ok: false,
    problems: [],
  });
});

test('check tells whether eLabFTW has what the instruments name', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, 'elabftw');
  const instruments = '  a: { watch: data/balance, experiment: { category: Raw dta, link: Balance, status: 2 } }';
  const { config } = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments });
  const { status, stdout } = await labfeed(['check', '--config', config]);
  expect(status).toBe(1);
  expect(stdout.match(/^error .*$/gm)).toEqual([
    'error  a: the notebook has no category "Raw dta"; it has "Raw data", "Analysis" and "Production"',
  ]);
});

test('demo --once files the samples and exits with 0; repeated in the same folder, it adds nothing', async () => {
  const folder = tempFolder();
  const first = await labfeed(['demo', '--once', '--dir', folder]);
  expect(first).toMatchObject({ status: 0, stderr: '' });
  expect(first.stdout).toContain('8 done.');
  expect(first.stdout.match(/ {2}filed /g)).toHaveLength(8);
  const second = await labfeed(['demo', '--once', '--dir', folder]);
  expect(second.status).toBe(0);
  expect(second.stdout).toContain('8 done.');
  expect(second.stdout).not.toMatch(/ {2}filed /);
  expect(readFileSync(join(folder, 'labfeed.log'), 'utf8')).toContain('"msg":"ready"');
});

test('a port in use is reported with a hint', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as { port: number };
  for (const args of [
    ['sandbox', '--data', 'n.db'],
    ['demo', '--once'],
  ]) {
    const { status, stderr } = await labfeed([...args, '--port', String(port)]);
    expect(status).toBe(1);
    expect(stderr).toMatch(new RegExp(`port ${port}[\\s\\S]*--port`));
  }
});

test('schema prints a JSON Schema with every key of the example configuration', async () => {
  const { stdout } = await labfeed(['schema']);
  const schema = JSON.parse(stdout);
  expect(Object.keys(schema.properties)).toEqual(
    expect.arrayContaining(['include', 'notebook', 'journal', 'status', 'log', 'alarms', 'keep', 'instruments']),
  );
  expect(schema.properties.instruments.additionalProperties.properties.parse).toBeDefined();
  expect(schema.properties.notebook.properties.url.description).toContain('/api/v2');
});

test('the example configuration is valid and shows every key', async () => {
  const example = new URL('../../config.example.yaml', import.meta.url);
  const folder = tempFolder();
  mkdirSync(join(folder, 'instruments.d'));
  writeFileSync(join(folder, 'labfeed.yaml'), readFileSync(example));
  const { status, stderr } = await labfeed(['check', '--offline'], folder);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });

  const text = readFileSync(example, 'utf8');
  const schema = JSON.parse((await labfeed(['schema'])).stdout);
  const keys = [
    ...Object.keys(schema.properties),
    ...Object.keys(schema.properties.notebook.properties),
    ...Object.keys(schema.properties.instruments.additionalProperties.properties),
    ...Object.keys(schema.properties.instruments.additionalProperties.properties.experiment.properties),
    ...Object.keys(schema.properties.instruments.additionalProperties.properties.comments.properties),
  ];
  for (const key of keys) expect(text, key).toMatch(new RegExp(`\\b${key}:`));
});

test('wrong usage points to the help of the command', async () => {
  const nested = await labfeed(['keys', 'create', ' ']);
  expect(nested).toMatchObject({ status: 2, stderr: expect.stringContaining('Expected a name.') });
  expect(nested.stderr).toContain('Try: labfeed keys create --help');
  expect((await labfeed(['chek'])).stderr).toContain('Try: labfeed --help');
});

test('check does not check the journal without a configuration, and neither check nor run accepts a configuration without instruments', async () => {
  const folder = tempFolder();
  const absent = await labfeed(['check', '--config', join(folder, 'absent.yaml')]);
  expect(absent.status).toBe(78);
  expect(absent.stdout).not.toContain('journal');
  const config = join(folder, 'labfeed.yaml');
  const notebook = 'notebook: { url: "https://eln.example.org", key: { env: A } }\n';
  for (const [text, expected] of [
    [notebook, 'there is no instrument'],
    [`${notebook}instrumants: { balance: { watch: data } }\n`, 'did you mean instruments?'],
  ] as const) {
    writeFileSync(config, text);
    for (const command of [['check', '--offline'], ['run']]) {
      const { status, stderr } = await labfeed([...command, '--config', config]);
      expect({ status, stderr }).toEqual({ status: 78, stderr: expect.stringContaining(expected) });
    }
  }
});

test('a file in place of a folder is a user error, not a bug', async () => {
  const folder = tempFolder();
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const demo = await labfeed(['demo', '--once', '--dir', file]);
  expect(demo.status).toBe(1);
  expect(demo.stderr).toMatch(/^labfeed: cannot create the folder .* \(E[A-Z]+\)\n {2}→ .*--dir.*\n$/);
  const sandbox = await labfeed(['sandbox', '--port', '0', '--data', join(file, 'notebook.db')]);
  expect(sandbox.status).toBe(1);
  expect(sandbox.stderr).toMatch(/^labfeed: cannot create the folder .* \(E[A-Z]+\)\n {2}→ .*--data.*\n$/);

  const { config } = makeSite(folder, { url: 'http://127.0.0.1:1', key: 'k' });
  writeFileSync(config, readFileSync(config, 'utf8').replace(/^journal: .*$/m, 'journal: file/journal.db'));
  const check = await labfeed(['check', '--config', config]);
  expect(check.stdout).toMatch(/error +cannot create the journal .*: .*file is not writable \(ENOTDIR\)/);
});
