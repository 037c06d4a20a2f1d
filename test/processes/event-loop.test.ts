import { appendFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CFB, read, utils, write } from '@e965/xlsx';
import { expect, test } from 'vitest';
import { makeSite, peakBytes, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const MONITOR = pathToFileURL(join(import.meta.dirname, '../support/loop-delay.mjs')).href;
const MAX_BLOCK_MS = 50;

/** A small workbook with a cell at the last place that there is. */
function farCell(): Buffer {
  const book = utils.book_new();
  utils.book_append_sheet(
    book,
    utils.aoa_to_sheet([
      ['a', 'b'],
      ['c', 1],
    ]),
    'S',
  );
  const archive = CFB.read(write(book, { type: 'buffer' }), { type: 'buffer' });
  for (const part of archive.FileIndex) {
    if (part.name !== 'sheet1.xml') continue;
    part.content = Buffer.from(Buffer.from(part.content).toString().replace('r="B2"', 'r="XFD1048576"'));
    part.size = part.content.length;
  }
  const content: Buffer = CFB.write(archive, { type: 'buffer', fileType: 'zip', compression: true });
  expect(read(content).SheetNames).toEqual(['S']);
  return content;
}

const columns = (cell: (n: number) => unknown) => Array.from({ length: 300_000 }, (_, n) => cell(n)).join(',');
const records = () => Array.from({ length: 250_000 }, (_, n) => JSON.stringify({ t: n, v: n / 2, s: 'abcdefgh' }));

/** For how long a file blocks the event loop of a daemon at most. Another instrument's file is filed meanwhile. */
async function longestBlockBy(name: string, content: string | Buffer): Promise<number> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const keys = 'ready: { quiet: 50ms }, existing: ingest';
  const instruments = `  odd: { watch: data/odd, ${keys} }\n  balance: { watch: data/balance, ${keys} }\n`;
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments });
  // The first file of each kind loads code, which takes longer than reading.
  site.drop('first.csv', weighing(0));
  site.drop('large.csv', `${weighing(1)}\n${'x,1\n'.repeat(100_000)}`, 'odd');
  const daemon = startDaemon(site.config, { NODE_OPTIONS: `--import ${MONITOR}` });
  await daemon.logged('run filed', 100_000);
  await daemon.logged(({ file, run }) => run !== undefined && String(file).endsWith('large.csv'), 100_000);
  const measured = async (times: number) => {
    daemon.child.kill('SIGUSR2');
    const all = () => daemon.lines.filter(({ msg }) => msg === 'loop delay');
    await expect.poll(() => all().length, { timeout: 60_000 }).toBe(times);
    const { maxMs, cpuMs } = (all().at(-1) ?? {}) as Record<string, unknown>;
    console.log(name, { maxMs, cpuMs });
    return Number(cpuMs);
  };
  await measured(1);
  site.drop(name, content, 'odd');
  site.drop('good.csv', weighing(2));
  await daemon.logged(({ msg, file }) => msg === 'run queued' && String(file).endsWith('good.csv'), 100_000);
  await daemon.logged(({ file, run }) => run !== undefined && String(file).endsWith(name), 100_000);
  const longestMs = await measured(2);
  expect(await daemon.stop()).toBe(0);
  return longestMs;
}

test.each<[string, string, () => string | Buffer]>([
  ['15 MB of commas', 'commas.csv', () => ','.repeat(15e6)],
  ['a header of 300,000 columns', 'wide.csv', () => `${columns((n) => `c${n}`)}\n${columns((n) => n)}\n`],
  ['a workbook with a cell at the end', 'far.xlsx', farCell],
  ['10 MB of JSON', 'large.json', () => `[${records().join(',')}]`],
])('%s do not block the event loop, and other files are filed meanwhile', async (_, name, make) => {
  expect(await longestBlockBy(name, make())).toBeLessThan(MAX_BLOCK_MS);
});

test('a large sample of a mapping does not block the event loop at a reload', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const daemon = startDaemon(site.config, { NODE_OPTIONS: `--import ${MONITOR}` });
  await daemon.logged('ready');
  const sample = `  tested: { watch: data/tested, tests: [{ file: sample.json, expect: { readings: 100000 } }] }\n`;
  // A busy machine must read it within 30 s.
  writeFileSync(join(folder, 'sample.json'), `[${records().slice(0, 100_000).join(',')}]`);
  appendFileSync(site.config, sample);
  daemon.child.kill('SIGUSR2');
  await daemon.logged('loop delay');
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded', 100_000);
  daemon.child.kill('SIGUSR2');
  const measured = () => daemon.lines.filter(({ msg }) => msg === 'loop delay');
  await expect.poll(() => measured().length, { timeout: 60_000 }).toBe(2);
  expect(Number((measured()[1] as Record<string, unknown> | undefined)?.['cpuMs'])).toBeLessThan(500);
  expect(await daemon.stop()).toBe(0);
});

test.each([
  ['with', ', parse: { delimiter: ",", table: {}, limits: { seconds: 3m } }'],
  ['without', ''],
])('a long file is read in less than 200 MB of memory, %s a mapping', async (_how, parse) => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const instruments = `  logger: { watch: data/balance, ready: { quiet: 50ms }${parse} }`;
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments });
  const long = join(folder, 'long.csv');
  writeFileSync(long, 'Time (s),Channel,Temperature (°C),Pressure (mbar),Remark\n');
  for (let part = 0; part < 40; part++) {
    const row = (n: number) => `${part * 30_000 + n}.5,${n % 8},${20 + (n % 500) / 100},${1000 + (n % 97)}.25,ok\n`;
    appendFileSync(long, Array.from({ length: 30_000 }, (_, n) => row(n)).join(''));
  }
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  renameSync(long, join(folder, 'data', 'balance', 'long.csv'));
  await daemon.logged('run queued', 180_000);
  expect(peakBytes(daemon)).toBeLessThan(200e6);
  await daemon.stop();
});

test('four sparse files of 8 TB do not keep an instrument from filing others', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  for (const n of [1, 2, 3, 4]) {
    site.drop(`sparse${n}.csv`, weighing(n));
    truncateSync(join(folder, `data/balance/sparse${n}.csv`), 8 * 2 ** 40);
  }
  const { reason } = await daemon.logged('run quarantined');
  expect(reason).toMatch(/too large: 8388608\.0 MB, the limit is 1024\.0 MB/);
  site.drop('good.csv', weighing(9));
  await daemon.logged('run filed');
  expect(await daemon.stop()).toBe(0);
});
