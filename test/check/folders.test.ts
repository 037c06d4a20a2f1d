import { chmodSync, mkdirSync, promises, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { checkFolders, mergeOverlaps, overlapFinding, possibleOverlaps } from '../../src/check/folders.js';
import { checkService } from '../../src/check/service.js';
import { type Claim, loadConfig } from '../../src/config/load.js';
import type { NotebookConfig } from '../../src/config/settings.js';
import type { LiveInstrument } from '../../src/live.js';
import { someInstrument } from '../support/status-server.js';
import { tempFolder } from '../support/temp-folder.js';

const claim = (name: string, watch: string, ...files: string[]): Claim => ({
  name,
  watch,
  files,
  ignore: ['**/.*', '**/~*'],
  ready: { quiet: 1 },
  run: 'file',
});

const example = (one: Claim, other: Claim): string | undefined => possibleOverlaps([one, other]).overlaps[0]?.example;

test('globs that can match the same file are found before such a file exists', () => {
  const csv = claim('a', '/data', '*.csv');
  expect(example(csv, claim('b', '/data', 'run-*.csv'))).toBe('/data/run-x.csv');
  expect(example(csv, claim('b', '/data', 'run-*'))).toBe('/data/run-x.csv');
  expect(example(csv, claim('b', '/data', '**/*'))).toBe('/data/x.csv');
  expect(example(csv, claim('b', '/', '**/*.{tsv,csv}'))).toBe('/data/x.csv');
  expect(example(claim('a', '/data/balance', '**/*'), claim('b', '/data', '**/*.csv'))).toBe('/data/balance/x.csv');
  expect(example(csv, claim('b', '/data', '[a-f]*.csv'))).toBe('/data/ax.csv');
});

test('instruments that cannot match the same file do not overlap', () => {
  const csv = claim('a', '/data', '*.csv');
  expect(example(csv, claim('b', '/data', '*.tsv'))).toBeUndefined();
  expect(example(csv, claim('b', '/other', '*.csv'))).toBeUndefined();
  expect(example(csv, claim('b', '/data/sub', '*.csv'))).toBeUndefined();
  expect(example(csv, claim('b', '/data', '*.csv', '!*.csv'))).toBeUndefined();
});

test('actual overlaps in the folders replace possible ones', () => {
  const { overlaps: possible } = possibleOverlaps([
    claim('a', '/d', '*'),
    claim('b', '/d', '*.csv'),
    claim('c', '/d', '*.tsv'),
  ]);
  const seen = [{ first: 'a', second: 'b', example: '/d/1.csv', files: 3 }];
  expect(mergeOverlaps(seen, possible).map((one) => overlapFinding(one).text)).toEqual([
    'b overlaps with a: 3 files that match both, such as /d/1.csv, go to a',
    'c overlaps with a: a file such as /d/x.tsv would match both and go to a',
  ]);
});

test('runs of folders and of joined files overlap only if they match the same file', () => {
  const folders = { ...claim('a', '/data', '**/*'), run: { folder: '*' } };
  const pairs = { ...claim('b', '/data', '**/*'), run: { join: ['{stem}.csv', '{stem}.xml'] } };
  expect(example(folders, claim('b', '/data', '*.csv'))).toBeUndefined();
  expect(example(folders, claim('b', '/data', '**/*.csv'))).toBe('/data/x/x.csv');
  expect(example(pairs, claim('c', '/data', '*.txt'))).toBeUndefined();
  expect(example(pairs, claim('c', '/data', '*.xml'))).toBe('/data/x.xml');
});

test('files that the user may not read are named', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'data'));
  for (const name of ['a.csv', 'b.csv', 'c.csv']) writeFileSync(join(folder, 'data', name), 'x');
  // Root may read everything.
  const access = vi.spyOn(promises, 'access').mockImplementation(async (path) => {
    if (!String(path).endsWith('a.csv')) throw Object.assign(new Error('denied'), { code: 'EACCES' });
  });
  onTestFinished(() => access.mockRestore());
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(file, 'instruments:\n  balance: { watch: data }\n');
  const { findings } = await checkFolders(loadConfig(file));
  expect(findings.find(({ level }) => level === 'wrong')?.text).toMatch(
    /balance: cannot read 2 files .*: b\.csv, c\.csv; b\.csv: the user/,
  );
});

test('a glob that matches nothing is noted if there are files that no other instrument takes', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'data'));
  for (const name of ['run-1.txt', 'run-2.txt', 'log.json']) writeFileSync(join(folder, 'data', name), 'x');
  const check = async (instruments: string) => {
    const file = join(folder, 'labfeed.yaml');
    writeFileSync(file, `instruments:\n${instruments}`);
    return (await checkFolders(loadConfig(file))).findings;
  };
  expect(await check('  a: { watch: data, files: "*.csv" }\n')).toEqual([
    {
      level: 'note',
      text: `a: no file in ${folder}/data matches \`files: *.csv\`, but 3 other files are there, such as run-2.txt`,
      hint: 'to take such files, set files: "**/*.txt"',
    },
  ]);
  const [others] = await check(
    '  a: { watch: data, files: "*.csv" }\n  b: { watch: data, files: ["*.txt", "*.json"] }\n',
  );
  expect(others).toEqual({ level: 'good', text: `a: 0 matching files in ${folder}/data` });
  const [missing] = await check('  a: { watch: gone }\n');
  expect(missing).toMatchObject({ level: 'wrong', text: `a: the folder ${folder}/gone does not exist` });
});

test('with very many instruments in one folder, not all pairs are compared, and that is said', () => {
  const claims = Array.from({ length: 300 }, (_, n) => claim(`i${n}`, '/d', `${n}.csv`));
  expect(possibleOverlaps(claims)).toEqual({ overlaps: [], isComplete: false });
  expect(possibleOverlaps(claims.slice(0, 50)).isComplete).toBe(true);
});

test('a folder that very many instruments watch is listed for the first of them only', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'data'));
  for (let n = 0; n < 110; n++) writeFileSync(join(folder, 'data', `${n}.csv`), '');
  const lines = Array.from({ length: 110 }, (_, n) => `  i${n}: { watch: data, files: "${n}.csv" }`);
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(file, `instruments:\n${lines.join('\n')}\n`);
  const { findings, overlaps } = await checkFolders(loadConfig(file));
  expect(overlaps).toEqual([]);
  expect(findings.filter(({ level }) => level === 'good')).toHaveLength(100);
  expect(findings.at(-1)?.text).toBe(
    `more than 100 instruments watch ${folder}/data: only the first were compared with the files there`,
  );
});

test('what the daemon has found out about a folder is said: no events, or a share that is away', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'labfeed.yaml'), 'instruments: { a: { watch: data } }\n');
  const check = async (changes: Partial<LiveInstrument>) => {
    const live = someInstrument('a', changes);
    return (await checkFolders(loadConfig(join(folder, 'labfeed.yaml')), [live])).findings;
  };
  const away = { state: 'missing', reason: 'nothing is mounted at /mnt/nas' } as const;
  expect((await check({ folder: away }))[0]).toEqual({
    level: 'wrong',
    text: `a: the folder ${folder}/data is empty: nothing is mounted at /mnt/nas`,
  });
  writeFileSync(join(folder, 'data/a.csv'), '');
  const findings = await check({ polling: { everyMs: 10_000, because: 'no events for changes' } });
  expect(findings).toEqual([
    { level: 'good', text: `a: 1 matching file in ${folder}/data` },
    {
      level: 'good',
      text: `a: ${folder}/data sends no events for new files (no events for changes), so labfeed scans it every 10 s, or less often if that takes long`,
    },
  ]);
});

describe('if files are to be moved or deleted', () => {
  function setUp() {
    const folder = tempFolder();
    for (const name of ['data', 'other']) mkdirSync(join(folder, name));
    const check = async (source: string) => {
      const file = join(folder, 'labfeed.yaml');
      writeFileSync(file, `instruments:\n  a: { watch: data, source: ${source} }\n  b: { watch: other }\n`);
      return (await checkFolders(loadConfig(file))).findings.filter(({ level }) => level !== 'good');
    };
    return { folder, check };
  }

  test('a target that cannot be used is found, and nothing is created', async () => {
    const { folder, check } = setUp();
    for (const source of ['keep', 'delete', '{ move: done }']) expect(await check(source)).toEqual([]);
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'labfeed.yaml', 'other']);
    writeFileSync(join(folder, 'file'), '');
    symlinkSync(join(folder, 'other'), join(folder, 'link'));
    for (const [source, text] of [
      ['{ move: file }', 'it is a file, not a folder'],
      ['{ move: no/where }', `the folder ${folder}/no does not exist`],
      ['{ move: link }', 'it is in a watched folder'],
      ['{ move: link/below }', 'it is in a watched folder'],
    ] as const)
      expect(await check(source)).toEqual([
        { level: 'wrong', text: expect.stringContaining(text), hint: expect.any(String) },
      ]);
  });

  test('files that still have private names are named', async () => {
    const { folder, check } = setUp();
    writeFileSync(join(folder, 'data/.labfeed-0a1b2c3d-a.csv'), '');
    expect(await check('keep')).toMatchObject([
      { level: 'note', text: expect.stringMatching(/1 file in .* has the name .* such as \.labfeed-0a1b2c3d-a\.csv/) },
    ]);
  });

  test('the folders and the certificate that the service cannot read are named', ({ skip }) => {
    const found = (unit: Readonly<Record<string, string>>, watch: string, ca?: string) =>
      checkService(
        { instruments: [{ watch, source: 'keep' }], ...(ca && { notebook: { ca } as NotebookConfig }) },
        new Map(Object.entries(unit)),
        [watch],
      ).map(({ text }) => text);
    for (const [unit, watch, hidden] of [
      [{ PrivateTmp: 'yes' }, '/tmp/data', true],
      [{ PrivateTmp: 'disconnected' }, '/var/tmp', true],
      [{ PrivateTmp: 'no' }, '/tmp/data', false],
      [{ PrivateTmp: 'yes' }, '/tmporary', false],
      [{ PrivateTmp: 'yes', BindPaths: '-/tmp/data' }, '/tmp/data/balance', false],
      [{ ProtectHome: 'read-only' }, '/home/ada', false],
      [{ ProtectHome: 'yes' }, '/home/ada', true],
      [{ ProtectHome: 'tmpfs', BindReadOnlyPaths: '/home/ada:/home/ada:rbind' }, '/home/ada', false],
    ] as const)
      expect({ unit, watch, found: found(unit, watch) }).toEqual({
        unit,
        watch,
        found: hidden ? [expect.stringContaining(`hides ${watch} (`)] : [],
      });
    if (process.geteuid?.() !== 0) skip('only root can try as another user');
    const folder = tempFolder();
    const file = join(folder, 'ca.pem');
    writeFileSync(file, '', { mode: 0o600 });
    chmodSync(folder, 0o755);
    expect(found({ User: 'nobody' }, folder, file)).toEqual([expect.stringContaining(`may not read ${file}`)]);
    chmodSync(folder, 0o700);
    expect(found({ User: 'nobody' }, folder)).toEqual([expect.stringContaining(`may not read ${folder}`)]);
    expect(found({ User: 'root' }, folder)).toEqual([]);
  });

  test('the folders that the service may not write to are named', () => {
    const instruments = [
      { watch: '/srv/a', source: { move: '/filed' } },
      { watch: '/srv/b', source: 'delete' },
      { watch: '/srv/c', source: 'keep' },
    ] as const;
    const found = (
      unit: Readonly<Record<string, string>>,
      some: readonly (typeof instruments)[number][] = instruments,
    ) => checkService({ instruments: some }, new Map(Object.entries(unit)), []).map(({ text, hint }) => text + hint);
    expect(found({})).toEqual([]);
    expect(found({ ProtectSystem: 'full', ReadWritePaths: '' })).toEqual([]);
    expect(found({ ProtectSystem: 'strict', ReadWritePaths: '-/srv/ /filed' })).toEqual([]);
    expect(found({ ProtectSystem: 'strict', ReadWritePaths: '/srv/b /srv/aa' })).toEqual([
      expect.stringMatching(/may not write to \/srv\/a and \/filed, .*ReadWritePaths=-\/srv\/a -\/filed,/),
    ]);
    expect(found({ ProtectSystem: 'strict', ReadWritePaths: '' })).toHaveLength(1);
    expect(found({ ProtectSystem: 'strict' }, [instruments[2]])).toEqual([]);
  });
});
