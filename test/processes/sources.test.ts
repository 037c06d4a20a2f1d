import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function setUp(source: string, dialect: Dialect = 'v2', more = '') {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 100ms }, source: ${source}${more} }`;
  return { folder, sandbox, site: makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments }) };
}

const watched = ({ folder }: Site): string[] =>
  readdirSync(join(folder, 'data/balance'), { recursive: true }).sort() as string[];
const why = async (path: string, { config, folder }: Site): Promise<string> =>
  (await labfeed(['why', path, '--config', config], folder)).stdout;

test('source: move puts a filed file elsewhere, once, and it is found by its old path', async () => {
  const { site, sandbox, folder } = await setUp('{ move: filed }');
  mkdirSync(join(folder, 'data/balance/monday'));
  site.drop('monday/a.csv', weighing(1));
  const daemon = startDaemon(site.config);
  const target = join(folder, 'filed/monday/a.csv');
  await until('the file is moved', () => existsSync(target) && watched(site).length === 1);
  expect(readFileSync(target, 'utf8')).toBe(weighing(1));
  expect(sandbox.experiments()).toHaveLength(1);
  expect(await why(join(folder, 'data/balance/monday/a.csv'), site)).toContain(`its file was moved to ${target}`);
  // The same name again, with other content, overwrites nothing.
  site.drop('monday/a.csv', weighing(2));
  await until('the second file is moved', () => existsSync(join(folder, 'filed/monday/a (2).csv')));
  await daemon.stop();
  expect(readFileSync(target, 'utf8')).toBe(weighing(1));
  expect(sandbox.experiments()).toHaveLength(2);
  const again = startDaemon(site.config);
  await again.logged('ready');
  await again.stop();
  expect(sandbox.experiments()).toHaveLength(2);
  const audit = await labfeed(['audit', '--config', site.config], folder);
  expect(audit.status).toBe(0);
}, 120_000);

test('source: delete removes a file once the notebook has all of it, and no other', async () => {
  const { site, folder } = await setUp('delete', 'v2', ', parse: { delimiter: ";", table: { header: Time } }');
  // The first line of the second file is in no table and no fact.
  site.drop('a.csv', 'Time;Weight [g]\n1;2.5\n');
  site.drop('b.csv', 'remark without a place\nTime;Weight [g]\n1;3.5\n');
  const daemon = startDaemon(site.config);
  await until('the first file is deleted', () => watched(site).join() === 'b.csv');
  await daemon.logged('the filed file stays where it is for now');
  expect(watched(site)).toEqual(['b.csv']);
  expect(await why(join(folder, 'data/balance/a.csv'), site)).toContain('its file was deleted');
  expect(await why(join(folder, 'data/balance/b.csv'), site)).toMatch(/neither moved nor deleted yet: .*not read/);
  await until('there is an alarm', async () => {
    const { stdout } = await labfeed(['status', '--config', site.config], folder);
    return /1 filed file is neither moved nor deleted; for example b\.csv/.test(stdout);
  });
  await daemon.stop();
}, 120_000);

test('source: delete waits until the raw file is attached, which makes it safe', async () => {
  const { site, sandbox } = await setUp('delete', 'elabftw', ', parse: { delimiter: ";", table: { header: Time } }');
  site.drop('b.csv', 'remark without a place\nTime;Weight [g]\n1;3.5\n');
  const daemon = startDaemon(site.config);
  await until('the file is deleted', () => watched(site).length === 0, 60_000);
  expect(sandbox.control.experiments().flatMap(({ uploads }) => uploads)).toMatchObject([{ real_name: 'b.csv' }]);
  await daemon.stop();
}, 120_000);

test('a move that fails leaves the file where it is, and is not repeated at once', async () => {
  const { site, folder } = await setUp('{ move: filed }');
  writeFileSync(join(folder, 'filed'), 'a file, not a folder');
  site.drop('a.csv', weighing(1));
  const daemon = startDaemon(site.config);
  const { reason } = await daemon.logged('the filed file stays where it is for now');
  expect(reason).toMatch(/cannot move .*a\.csv to .*filed\/a\.csv \(E/);
  expect(watched(site)).toEqual(['a.csv']);
  expect(daemon.lines.filter(({ msg }) => msg === 'the filed file stays where it is for now')).toHaveLength(1);
  await daemon.stop();
}, 60_000);
