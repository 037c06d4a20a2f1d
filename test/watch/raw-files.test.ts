import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunKind } from '../../src/config/schema.js';
import { Spool } from '../../src/spool.js';
import { createMatcher } from '../../src/watch/match.js';
import { createRawFiles } from '../../src/watch/raw-files.js';
import { createRuns } from '../../src/watch/runs.js';
import { list } from '../../src/watch/scan.js';
import { sha256 } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const signal = new AbortController().signal;

async function setUp(run: RunKind, contents: Readonly<Record<string, string>>, maxBytes = 10_000) {
  const root = tempFolder();
  for (const [name, content] of Object.entries(contents)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  const matcher = createMatcher({
    name: 'i',
    watch: root,
    files: ['**/*'],
    ignore: [],
    ready: { quiet: 0 },
    run,
  } as never);
  const runs = createRuns({ root, run, matcher, signal, isClaimed: () => false });
  const found = [];
  for await (const files of list(root, { matcher, signal })) found.push(...files);
  const [grouped] = runs.group(found);
  const whole = grouped && (await runs.stat(grouped));
  if (!whole || typeof whole === 'string') throw new Error('no run');
  const folder = join(tempFolder(), 'spool');
  const needed = new Set<string>();
  const rawFiles = createRawFiles({
    spool: new Spool(folder),
    maxBytes,
    isPlotted: true,
    isWanted: async () => true,
    isNeeded: async (key) => needed.has(key),
  });
  const copies = await rawFiles.begin(whole);
  if (!copies) throw new Error('no copies');
  const file = await runs.identify(whole, copies.copies());
  const spooled = () => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  };
  return { root, folder, copies, file, needed, spooled };
}

test('the bytes that are hashed are in the spool before the run is handed over', async () => {
  const { copies, file, needed, spooled, folder, root } = await setUp('file', { 'µ "1".csv': 'a,b\n' });
  const { attachments = [] } = await copies.keep(file, undefined);
  expect(attachments).toEqual([{ name: 'µ "1".csv', path: join(root, 'µ "1".csv'), sha256: sha256('a,b\n'), size: 4 }]);
  expect(readFileSync(join(folder, sha256('a,b\n')), 'utf8')).toBe('a,b\n');
  needed.add(sha256('a,b\n'));
  await copies.end();
  expect(spooled()).toEqual([sha256('a,b\n')]);
});

test('if the run is not handed over, nothing stays in the spool', async () => {
  for (const isKept of [true, false]) {
    const { copies, file, spooled } = await setUp('file', { 'a.csv': 'a' });
    if (isKept) await copies.keep(file, undefined);
    await copies.end();
    expect(spooled()).toEqual([]);
  }
});

test('a file that does not fit is attached from its path', async () => {
  const { copies, file, spooled } = await setUp('file', { 'a.csv': 'x'.repeat(100) }, 99);
  expect(await copies.keep(file, undefined)).toMatchObject({ attachments: [{ name: 'a.csv', size: 100 }] });
  expect(spooled()).toEqual([]);
});

test('each file of a folder is attached by itself, up to 20', async () => {
  const { copies, file, spooled } = await setUp({ folder: '*' }, { 'r/a.csv': 'a', 'r/sub/b.csv': 'b', 'r/empty': '' });
  const { attachments = [] } = await copies.keep(file, undefined);
  expect(attachments.map(({ name }) => name)).toEqual(['a.csv', 'empty', 'sub/b.csv']);
  expect(spooled()).toHaveLength(3);
});

const many = Object.fromEntries(
  Array.from({ length: 21 }, (_, n) => [`run µ/sub ${n}/data.csv`, n === 7 ? '' : `content ${n}\n`.repeat(n)]),
);

test('beyond 20 files there is one archive, the same for the same files, which others can read', async () => {
  const first = await setUp({ folder: '*' }, many);
  const [archive] = (await first.copies.keep(first.file, undefined)).attachments ?? [];
  expect(archive).toMatchObject({ name: 'run µ.zip' });
  const path = join(first.folder, archive?.sha256 ?? '');
  expect(readFileSync(path).length).toBe(archive?.size);
  const script =
    'import sys, json, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(json.dumps({i.filename: z.read(i).decode() for i in z.infolist()}))';
  const read = JSON.parse(execFileSync('python3', ['-c', script, path], { encoding: 'utf8' }));
  expect(read).toEqual(
    Object.fromEntries(Object.entries(many).map(([name, text]) => [name.replace('run µ/', ''), text])),
  );
});

test('an archive for which there is no room is reported', async () => {
  const { copies, file, spooled } = await setUp({ folder: '*' }, many, 100);
  const { attachments } = await copies.keep(file, undefined);
  expect(attachments).toMatchObject([
    { name: 'run µ.zip', problem: expect.stringMatching(/^the 21 raw files are not attached: there is no room/) },
  ]);
  await copies.end();
  expect(spooled()).toEqual([]);
});

const PNG = Buffer.from('a picture');
const PICTURE = { png: PNG, sha256: sha256('a picture'), description: 'line plot of b', texts: 'b', at: 7 };

test('the plot is kept beside the raw file, and has its name', async () => {
  const { copies, file, spooled, folder, needed } = await setUp('file', { 'µ "1".csv': 'a,b\n' });
  const { plot } = await copies.keep(file, undefined, PICTURE);
  const { png: _, texts: __, ...kept } = PICTURE;
  expect(plot).toEqual({ ...kept, name: 'µ "1"-plot.png', size: PNG.length });
  expect(readFileSync(join(folder, PICTURE.sha256))).toEqual(PNG);
  needed.add(PICTURE.sha256);
  await copies.end();
  expect(spooled()).toEqual([PICTURE.sha256]);
});

test('a plot for which there is no room, or that could not be drawn, leaves the raw file alone', async () => {
  const { copies, file, spooled } = await setUp('file', { 'a.csv': 'a' }, 5);
  const { attachments, plot } = await copies.keep(file, undefined, PICTURE);
  expect(attachments).toHaveLength(1);
  expect(plot).toMatchObject({ isFailed: true, reason: 'there is no room for it beside the journal' });
  expect(spooled()).toEqual([sha256('a')]);
  const failed = { at: 1, reason: 'not installed', isFailed: true };
  expect(await copies.keep(file, undefined, failed)).toMatchObject({ plot: failed });
});
